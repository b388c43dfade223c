//! What a load tester says it does, for whoever looks at its pod's log.
//!
//! The process' own log has the same and more. In drydock many pods share one process, so each gets its lines here.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

type Sink = dyn Fn(Value) + Send + Sync;

/// Where lines go; nowhere, unless somebody wants them.
#[derive(Clone, Default)]
pub struct Journal(Option<Arc<Sink>>);

impl Journal {
    /// Hands every line to `sink`, as a JSON object whose `ts` is left to whoever has a clock.
    pub fn to(sink: impl Fn(Value) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(sink)))
    }

    /// Adds a line; what is empty is left out.
    pub fn say(&self, level: &str, message: &str, fields: &[(&str, &str)]) {
        let Some(sink) = &self.0 else { return };
        let mut line = json!({"level": level, "ts": "", "msg": message});
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
            line[*name] = (*value).into();
        }
        sink(line);
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Journal").field(&self.0.is_some()).finish()
    }
}
