//! What a hook call carries.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The body of a hook call. Fields that are not needed here (phase, checksum) are ignored.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Payload {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub namespace: String,
    pub metadata: Option<BTreeMap<String, String>>,
}

impl Payload {
    /// `name.namespace`: how gates and tasks are told apart.
    pub fn canary(&self) -> String {
        format!("{}.{}", self.name, self.namespace)
    }
}

/// What a task call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Run in the background, one at a time per canary and command.
    Background { command: String, log_output: bool },
    /// Run, wait, and answer with the result.
    Blocking { command: String, log_output: bool, return_output: bool },
}

impl Request {
    /// Reads a task from the payload's metadata; the error is the text of a 400.
    pub fn read(payload: &Payload) -> Result<Self, String> {
        let metadata = payload.metadata.as_ref().ok_or("metadata not found in payload")?;
        let text = |key: &str| metadata.get(key).map(String::as_str);
        let switch = |key: &str| text(key).is_some_and(|value| value.eq_ignore_ascii_case("true") || value == "1");
        let command = || text("cmd").map(str::to_owned).ok_or_else(|| "cmd not found in metadata".to_owned());
        match text("type").unwrap_or("cmd") {
            "" | "cmd" => Ok(Self::Background { command: command()?, log_output: switch("logCmdOutput") }),
            "bash" => Ok(Self::Blocking {
                command: command()?,
                log_output: switch("logCmdOutput"),
                return_output: switch("returnCmdOutput"),
            }),
            kind @ ("helm" | "helmv3" | "kubectl" | "concord" | "ngrinder") => {
                Err(format!("task type {kind} is not offered by this load tester; use type bash or cmd"))
            }
            other => Err(format!("task type {other:?} is unknown; use type bash or cmd")),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn read(body: &str) -> Result<Request, String> {
        Request::read(&serde_json::from_str(body).unwrap())
    }

    #[test]
    fn a_command_without_a_type_runs_in_the_background() {
        let request = read(r#"{"metadata":{"cmd":"hey http://x","logCmdOutput":"true"}}"#);
        assert_eq!(request, Ok(Request::Background { command: "hey http://x".to_owned(), log_output: true }));
    }

    #[rstest]
    #[case("{}", "metadata not found in payload")]
    #[case(r#"{"metadata":{}}"#, "cmd not found in metadata")]
    #[case(r#"{"metadata":{"type":"bash"}}"#, "cmd not found in metadata")]
    #[case(r#"{"metadata":{"type":"helm","cmd":"test"}}"#, "task type helm is not offered")]
    #[case(r#"{"metadata":{"type":"kubectl","cmd":"get po"}}"#, "task type kubectl is not offered")]
    #[case(r#"{"metadata":{"type":"concord"}}"#, "task type concord is not offered")]
    #[case(r#"{"metadata":{"type":"ngrinder"}}"#, "task type ngrinder is not offered")]
    #[case(r#"{"metadata":{"type":"teapot"}}"#, "task type \"teapot\" is unknown")]
    fn what_cannot_be_done_is_said(#[case] body: &str, #[case] text: &str) {
        let problem = read(body).unwrap_err();
        assert!(problem.starts_with(text), "{problem}");
    }
}
