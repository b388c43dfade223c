//! Go's way of writing flags, made readable for clap.
//!
//! Flagger, its load tester and `hey` are Go programs: `-name=value`, `--name=value`, `-name value` and, for
//! switches, a bare `-name` or `-name=false`. Manifests and scripts out there are full of it. [`normalise`] rewrites
//! such a line into the `--name=value` form that clap understands; what a flag means stays with the clap command.
//!
//! It deliberately knows no flag by name: which of them take a value is read from the command itself.

use std::ffi::OsString;

use clap::{ArgAction, Command};

/// Rewrites `args` (without the program's name) for `command`, whose options must all be long ones.
///
/// As in Go, the first argument that is no flag ends the flags, and so does `--`.
pub fn normalise(command: &Command, args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut args = args.into_iter();
    let mut out = Vec::new();
    while let Some(arg) = args.next() {
        let Some(text) = arg.to_str().map(str::to_owned) else {
            out.push(OsString::from("--"));
            out.push(arg);
            break;
        };
        if text == "--" {
            out.push(arg);
            break;
        }
        let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-')).filter(|name| !name.is_empty());
        let Some(name) = name else {
            out.push(OsString::from("--"));
            out.push(arg);
            break;
        };
        if name == "h" && find(command, name).is_none() {
            out.push(OsString::from("--help"));
        } else if name.contains('=') {
            out.push(OsString::from(format!("--{name}")));
        } else if find(command, name).is_some_and(needs_value) {
            // Joined with its value, so that a value that starts with a dash is not taken for a flag.
            match args.next() {
                Some(value) => {
                    let mut joined = OsString::from(format!("--{name}="));
                    joined.push(value);
                    out.push(joined);
                }
                None => out.push(OsString::from(format!("--{name}"))),
            }
        } else {
            out.push(OsString::from(format!("--{name}")));
        }
    }
    out.extend(args);
    out
}

fn find<'a>(command: &'a Command, name: &str) -> Option<&'a clap::Arg> {
    command.get_arguments().find(|arg| {
        arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
    })
}

fn needs_value(arg: &clap::Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append) && !arg.is_require_equals_set()
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    #[derive(Args, Debug)]
    struct Sample {
        #[arg(long = "mesh-provider", default_value = "istio")]
        mesh_provider: String,
        #[arg(long = "H")]
        header: Vec<String>,
        #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
        leader: bool,
        rest: Vec<String>,
    }

    fn parse(line: &[&str]) -> Result<Sample, clap::Error> {
        let command = Sample::augment_args(Command::new("sample").no_binary_name(true));
        let args = normalise(&command, line.iter().map(OsString::from));
        Sample::from_arg_matches(&command.try_get_matches_from(args)?)
    }

    #[test]
    fn one_dash_and_two_mean_the_same() {
        for line in [
            vec!["-mesh-provider=gatewayapi:v1", "-leader"],
            vec!["--mesh-provider", "gatewayapi:v1", "--leader=true"],
            vec!["-mesh-provider", "gatewayapi:v1", "-leader=true"],
        ] {
            let sample = parse(&line).unwrap();
            assert_eq!(sample.mesh_provider, "gatewayapi:v1");
            assert!(sample.leader);
        }
    }

    #[test]
    fn a_switch_does_not_eat_what_follows() {
        let sample = parse(&["-leader", "http://host/"]).unwrap();
        assert!(sample.leader);
        assert_eq!(sample.rest, ["http://host/"]);
    }

    #[test]
    fn a_switch_can_be_turned_off() {
        assert!(!parse(&["-leader=false"]).unwrap().leader);
    }

    #[test]
    fn a_value_may_start_with_a_dash() {
        assert_eq!(parse(&["-H", "-x: 1", "-H=Cookie: a=b"]).unwrap().header, ["-x: 1", "Cookie: a=b"]);
    }

    #[test]
    fn the_first_word_ends_the_flags() {
        assert_eq!(parse(&["word", "-leader"]).unwrap().rest, ["word", "-leader"]);
    }

    #[test]
    fn an_unknown_flag_is_an_error_that_names_it() {
        assert!(parse(&["-no-such-flag=1"]).unwrap_err().to_string().contains("--no-such-flag"));
    }
}
