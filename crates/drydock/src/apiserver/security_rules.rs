//! What is wrong with what a pod or a container may do, in the order in which the real server looks.

use serde_json::{Value, json};

use super::error::Cause;
use super::meta;
use super::path_rules::descending;
use super::pod_rules::{given, list, supported};

const IDS: &str = "must be between 0 and 2147483647, inclusive";
/// Parts of the kernel of which every pod may have its own: those of the network, and those for talking to each other.
const IPC: [&str; 10] = [
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.shm",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.msg",
];

/// Rules for a whole pod.
pub(super) fn pod_security(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(context) = given(spec, "securityContext") else { return };
    let specified = |field: &str| spec.get(field) == Some(&Value::Bool(true));
    let place = format!("{path}.securityContext");
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(context.get(field), &format!("{place}.{field}"), causes);
    }
    for (at, group) in list(context, "supplementalGroups").iter().enumerate() {
        id(Some(group), &format!("{place}.supplementalGroups[{at}]"), causes);
    }
    if specified("shareProcessNamespace") && specified("hostPID") {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        causes.push(Cause::invalid(format!("{place}.shareProcessNamespace"), &json!(true), why));
    }
    sysctls(list(context, "sysctls"), &format!("{place}.sysctls"), &specified, causes);
    supported(context, &place, "fsGroupChangePolicy", &["Always", "OnRootMismatch"], causes);
    seccomp(context, &place, causes);
    app_armor(context, &place, causes);
    supported(context, &place, "supplementalGroupsPolicy", &["Merge", "Strict"], causes);
    // Another way is known, but switched off.
    supported(context, &place, "seLinuxChangePolicy", &["Recursive"], causes);
}

/// Rules for one container, which may share the users of its node.
pub(super) fn container_security(container: &Value, path: &str, host_users: bool, causes: &mut Vec<Cause>) {
    let Some(context) = given(container, "securityContext") else { return };
    let path = format!("{path}.securityContext");
    for field in ["runAsUser", "runAsGroup"] {
        id(context.get(field), &format!("{path}.{field}"), causes);
    }
    supported(context, &path, "procMount", &["Default", "Unmasked"], causes);
    if let Some(found) = context.get("procMount").filter(|word| host_users && **word == "Unmasked") {
        let why = "`hostUsers` must be false to use `Unmasked`";
        causes.push(Cause::invalid(format!("{path}.procMount"), found, why));
    }
    seccomp(context, &path, causes);
    if context.get("allowPrivilegeEscalation") == Some(&Value::Bool(false)) {
        let why = "cannot set `allowPrivilegeEscalation` to false and ";
        if context.get("privileged") == Some(&Value::Bool(true)) {
            causes.push(Cause::invalid(path.clone(), &as_in_go(context), &format!("{why}`privileged` to true")));
        }
        for _ in meta::strings(context.pointer("/capabilities/add")).iter().filter(|name| **name == "CAP_SYS_ADMIN") {
            let why = format!("{why}`capabilities.Add` CAP_SYS_ADMIN");
            causes.push(Cause::invalid(path.clone(), &as_in_go(context), &why));
        }
    }
    app_armor(context, &path, causes);
}

fn id(number: Option<&Value>, place: &str, causes: &mut Vec<Cause>) {
    if let Some(found) = number.filter(|it| it.as_i64().is_some_and(|it| !(0..=i64::from(i32::MAX)).contains(&it))) {
        causes.push(Cause::invalid(place, found, IDS));
    }
}

/// Settings of the kernel, none of which is that of the node.
fn sysctls(all: &[Value], path: &str, shared: &dyn Fn(&str) -> bool, causes: &mut Vec<Cause>) {
    for (at, sysctl) in all.iter().enumerate() {
        let place = format!("{path}[{at}].name");
        let name = meta::text(sysctl, "/name");
        if name.is_empty() {
            causes.push(Cause::required(place.clone(), ""));
        } else if !is_sysctl(name) {
            let why = "must have at most 253 characters and match regex \
                       ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            causes.push(Cause::invalid(place.clone(), &json!(name), why));
        } else if all.iter().take(at).any(|other| meta::text(other, "/name") == name) {
            causes.push(Cause::duplicate(place.clone(), &json!(name)));
        }
        // Whichever of the two signs comes first is the one between the parts.
        let first = name.find(['.', '/']).and_then(|at| name.as_bytes().get(at));
        let dotted = if first == Some(&b'/') { swapped(name) } else { name.to_owned() };
        let talking = IPC.contains(&dotted.as_str()) || dotted.starts_with("fs.mqueue.");
        for (field, own) in [("hostNetwork", dotted.starts_with("net.")), ("hostIPC", talking)] {
            if own && shared(field) {
                let why = format!("may not be specified when '{field}' is true");
                causes.push(Cause::invalid(place.clone(), &json!(name), &why));
            }
        }
    }
}

fn swapped(name: &str) -> String {
    let swap = |sign: char| match sign {
        '/' => '.',
        '.' => '/',
        other => other,
    };
    name.chars().map(swap).collect()
}

fn is_sysctl(name: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(byte);
    let right =
        |part: &str| edge(part.as_bytes().first()) && edge(part.as_bytes().last()) && part.bytes().all(|it| inner(&it));
    name.len() <= 253 && name.split(['.', '/']).all(right)
}

/// Which calls of the kernel are allowed.
fn seccomp(context: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(profile) = given(context, "seccompProfile") else { return };
    let path = format!("{path}.seccompProfile");
    kind(profile, &path, "seccompProfile", causes);
    let place = format!("{path}.localhostProfile");
    match (meta::text(profile, "/type"), given(profile, "localhostProfile")) {
        ("Localhost", None) => causes.push(Cause::required(place, "must be set when seccomp type is Localhost")),
        ("Localhost", Some(file)) => descending(file.as_str().unwrap_or_default(), &place, causes),
        (kind, Some(file)) => {
            let shown = json!({"Type": kind, "LocalhostProfile": file});
            causes.push(Cause::invalid(place, &shown, "can only be set when seccomp type is Localhost"));
        }
        (_, None) => {}
    }
}

fn app_armor(context: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(profile) = given(context, "appArmorProfile") else { return };
    let path = format!("{path}.appArmorProfile");
    let place = format!("{path}.localhostProfile");
    let missing = "must be set when AppArmor type is Localhost";
    match (meta::text(profile, "/type"), given(profile, "localhostProfile").and_then(Value::as_str)) {
        ("Localhost", None | Some("")) => causes.push(Cause::required(place, missing)),
        ("Localhost", Some(name)) => {
            if name.trim() != name {
                causes.push(Cause::invalid(place.clone(), &json!(name), "must not be padded with whitespace"));
            }
            if name.len() > 4095 {
                causes.push(Cause::too_long(place, "may not be more than 4095 bytes"));
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(name)) => {
            causes.push(Cause::invalid(place, &json!(name), "can only be set when AppArmor type is Localhost"));
        }
        _ => kind(profile, &path, "appArmorProfile", causes),
    }
}

fn kind(profile: &Value, path: &str, field: &str, causes: &mut Vec<Cause>) {
    if meta::text(profile, "/type").is_empty() {
        causes.push(Cause::required(format!("{path}.type"), &format!("type is required when {field} is set")));
    } else {
        supported(profile, path, "type", &["Localhost", "RuntimeDefault", "Unconfined"], causes);
    }
}

/// What a container may do as Go's struct, all fields of which are shown.
fn as_in_go(context: &Value) -> Value {
    let part = |name: &str, fields: &[(&str, &str)], empty: &Value| match given(context, name) {
        None => Value::Null,
        Some(part) => fields
            .iter()
            .map(|(shown, field)| ((*shown).to_owned(), part.get(*field).unwrap_or(empty).clone()))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    };
    let own = |name: &str| context.get(name).cloned().unwrap_or_default();
    let profile = [("Type", "type"), ("LocalhostProfile", "localhostProfile")];
    let linux = [("User", "user"), ("Role", "role"), ("Type", "type"), ("Level", "level")];
    let windows = [
        ("GMSACredentialSpecName", "gmsaCredentialSpecName"),
        ("GMSACredentialSpec", "gmsaCredentialSpec"),
        ("RunAsUserName", "runAsUserName"),
        ("HostProcess", "hostProcess"),
    ];
    json!({
        "Capabilities": part("capabilities", &[("Add", "add"), ("Drop", "drop")], &Value::Null),
        "Privileged": own("privileged"),
        "SELinuxOptions": part("seLinuxOptions", &linux, &json!("")),
        "WindowsOptions": part("windowsOptions", &windows, &Value::Null),
        "RunAsUser": own("runAsUser"),
        "RunAsGroup": own("runAsGroup"),
        "RunAsNonRoot": own("runAsNonRoot"),
        "ReadOnlyRootFilesystem": own("readOnlyRootFilesystem"),
        "AllowPrivilegeEscalation": own("allowPrivilegeEscalation"),
        "ProcMount": own("procMount"),
        "SeccompProfile": part("seccompProfile", &profile, &Value::Null),
        "AppArmorProfile": part("appArmorProfile", &profile, &Value::Null),
    })
}
