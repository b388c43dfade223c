//! A small vocabulary for structural schemas, so that a CRD reads like the documentation of its fields.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, ValidationRule,
};
use serde_json::Value;

/// One node of a schema.
#[derive(Clone, Debug)]
pub(super) struct Schema(JSONSchemaProps);

fn node(type_: &str, description: &str) -> Schema {
    Schema(JSONSchemaProps {
        type_: Some(type_.into()),
        description: (!description.is_empty()).then(|| description.into()),
        ..JSONSchemaProps::default()
    })
}

/// A string.
pub(super) fn text(description: &str) -> Schema {
    node("string", description)
}

/// A point in time, RFC 3339.
pub(super) fn time(description: &str) -> Schema {
    text(description).format("date-time")
}

/// A duration that begins as Flagger's pattern demands. The pattern is open at its end, so `1m30s` passes.
pub(super) fn duration(description: &str) -> Schema {
    text(description).pattern("^[0-9]+(m|s)")
}

/// One of these strings.
pub(super) fn choice(description: &str, values: &[&str]) -> Schema {
    let mut schema = text(description);
    schema.0.enum_ = Some(values.iter().map(|value| JSON(Value::from(*value))).collect());
    schema
}

/// Any number; Flagger's CRDs say `number` even where a whole one is meant, so ours must too.
pub(super) fn number(description: &str) -> Schema {
    node("number", description)
}

/// A whole number.
pub(super) fn integer(description: &str) -> Schema {
    node("integer", description)
}

/// True or false.
pub(super) fn flag(description: &str) -> Schema {
    node("boolean", description)
}

/// An object; give it fields.
pub(super) fn object(description: &str) -> Schema {
    node("object", description)
}

/// An object with any keys and these values.
pub(super) fn map(description: &str, values: Schema) -> Schema {
    let mut schema = node("object", description);
    schema.0.additional_properties = Some(JSONSchemaPropsOrBool::Schema(Box::new(values.0)));
    schema
}

/// A map from strings to strings.
pub(super) fn text_map(description: &str) -> Schema {
    map(description, text(""))
}

/// A list.
pub(super) fn list(description: &str, items: Schema) -> Schema {
    let mut schema = node("array", description);
    schema.0.items = Some(JSONSchemaPropsOrArray::Schema(Box::new(items.0)));
    schema
}

/// A list of strings.
pub(super) fn text_list(description: &str) -> Schema {
    list(description, text(""))
}

/// A whole number or a string.
pub(super) fn int_or_string(description: &str) -> Schema {
    Schema(JSONSchemaProps {
        description: Some(description.into()),
        x_kubernetes_int_or_string: Some(true),
        ..JSONSchemaProps::default()
    })
}

impl Schema {
    /// Adds a property.
    pub(super) fn field(mut self, name: &str, schema: Schema) -> Self {
        self.0.properties.get_or_insert_default().insert(name.into(), schema.0);
        self
    }

    /// These properties must be there.
    pub(super) fn required(mut self, names: &[&str]) -> Self {
        self.0.required = Some(names.iter().map(|name| (*name).to_owned()).collect());
        self
    }

    /// Exactly one of these sets of properties must be there as a whole.
    pub(super) fn one_of(mut self, sets: &[&[&str]]) -> Self {
        self.0.one_of = Some(sets.iter().map(|set| requires(set)).collect());
        self
    }

    /// At most one of these properties may be there.
    pub(super) fn at_most_one_of(mut self, names: &[&str]) -> Self {
        let each: Vec<_> = names.iter().map(|name| requires(&[name])).collect();
        let none = JSONSchemaProps { any_of: Some(each.clone()), ..JSONSchemaProps::default() };
        let none = JSONSchemaProps { not: Some(Box::new(none)), ..JSONSchemaProps::default() };
        self.0.one_of = Some(std::iter::once(none).chain(each).collect());
        self
    }

    /// Alternatives that are more than sets of names.
    pub(super) fn alternatives(mut self, alternatives: Vec<JSONSchemaProps>) -> Self {
        self.0.one_of = Some(alternatives);
        self
    }

    /// The string must match.
    pub(super) fn pattern(mut self, pattern: &str) -> Self {
        self.0.pattern = Some(pattern.into());
        self
    }

    /// The string or number has this format.
    pub(super) fn format(mut self, format: &str) -> Self {
        self.0.format = Some(format.into());
        self
    }

    /// Length of the string.
    pub(super) fn length(mut self, least: i64, most: i64) -> Self {
        self.0.min_length = (least > 0).then_some(least);
        self.0.max_length = Some(most);
        self
    }

    /// Bounds of the number, inclusive.
    pub(super) fn between(mut self, least: f64, most: f64) -> Self {
        self.0.minimum = Some(least);
        self.0.maximum = Some(most);
        self
    }

    /// Lower bound of the number, inclusive.
    pub(super) fn at_least(mut self, least: f64) -> Self {
        self.0.minimum = Some(least);
        self
    }

    /// Longest list.
    pub(super) fn at_most_items(mut self, most: i64) -> Self {
        self.0.max_items = Some(most);
        self
    }

    /// What the server fills in.
    pub(super) fn default(mut self, value: impl Into<Value>) -> Self {
        self.0.default = Some(JSON(value.into()));
        self
    }

    /// Keeps fields that no schema names.
    pub(super) fn open(mut self) -> Self {
        self.0.x_kubernetes_preserve_unknown_fields = Some(true);
        self
    }

    /// A CEL rule, and what is said when it does not hold.
    pub(super) fn rule(mut self, rule: &str, message: &str) -> Self {
        self.0.x_kubernetes_validations.get_or_insert_default().push(ValidationRule {
            rule: rule.into(),
            message: Some(message.into()),
            ..ValidationRule::default()
        });
        self
    }

    /// The finished schema.
    pub(super) fn build(self) -> JSONSchemaProps {
        self.0
    }
}

/// A schema that only requires these properties.
pub(super) fn requires(names: &[&str]) -> JSONSchemaProps {
    JSONSchemaProps {
        required: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        ..JSONSchemaProps::default()
    }
}
