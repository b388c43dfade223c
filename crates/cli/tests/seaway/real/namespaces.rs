//! Namespaces for network, mounts and processes: a machine of its own for a cluster.

use std::fs;
use std::io::Write as _;
use std::process::Command;

/// A command that runs another one in namespaces of its own. It ends with the thread that starts it, also when that is
/// killed, and everything in the namespaces ends with it.
pub fn unshare() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare"]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    command
}

/// Whether there can be such a place; the error is why not.
pub fn possible() -> Result<(), String> {
    for program in ["ip", "mount"] {
        Command::new(program).arg("-V").output().map_err(|_| format!("there is no {program}"))?;
    }
    let tried = unshare().arg("true").output().map_err(|error| format!("there is no setpriv: {error}"))?;
    let said = || String::from_utf8_lossy(&tried.stderr).trim().to_owned();
    if tried.status.success() { Ok(()) } else { Err(format!("this user may not make namespaces: {}", said())) }
}

/// Gives the addresses of pods and Services to this machine, and its names to the cluster's DNS.
pub fn prepare() {
    run("ip", &["link", "set", "lo", "up"]);
    run("ip", &["address", "add", "10.244.0.1/16", "dev", "lo"]);
    run("ip", &["address", "add", "10.96.0.1/16", "dev", "lo"]);
    let text = format!(
        "nameserver {}\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions timeout:1\n",
        seaway_drydock::berth::DNS
    );
    // Every haven counts its processes from one, so a process's number would not make a name of its own.
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let place = fs::canonicalize("/etc/resolv.conf").unwrap();
    // What nodes mount for their pods is there.
    run("mount", &["-t", "tmpfs", "run", "/run"]);
    if !place.exists() {
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, "").unwrap();
    }
    run("mount", &["--bind", &file.path().to_string_lossy(), &place.to_string_lossy()]);
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {}: {said}", arguments.join(" "));
}
