//! Timestamps as Kubernetes writes them: RFC 3339, UTC, whole seconds.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `value` without its fraction of a second; the form that is stored and compared.
pub(crate) fn whole_seconds(value: Timestamp) -> Timestamp {
    Timestamp::from_second(value.as_second()).unwrap_or(value)
}

/// `#[serde(with)]` for a time that may be absent. Go writes an unset time as `null`; both spellings are read.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Timestamp, whole_seconds};

    // Serde hands over a reference to the field.
    #[allow(clippy::ref_option)]
    pub(crate) fn serialize<S: Serializer>(value: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(whole_seconds).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
        Option::<Timestamp>::deserialize(deserializer)
    }
}
