//! What the stories run on: a kubectl, a server, and a place for each story.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::story::Story;
use crate::real::part;

/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The path of a kubectl: one that is built from the published modules, or the one on this machine if it is as old. What
/// kubectl prints changes from one minor version to the next.
pub fn kubectl() -> Result<PathBuf, String> {
    let why = match part("kubectl") {
        Ok(built) => return Ok(built),
        Err(why) => why,
    };
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|folder| folder.join("kubectl")).find(|path| path.is_file());
    let found = found.ok_or_else(|| format!("there is no kubectl, and none can be built: {why}"))?;
    let said = Command::new(&found).args(["version", "--client", "-o", "json"]).output();
    let said = said.map_err(|error| error.to_string())?;
    let said: serde_json::Value = serde_json::from_slice(&said.stdout).map_err(|error| error.to_string())?;
    let minor = said["clientVersion"]["minor"].as_str().unwrap_or_default().trim_end_matches('+');
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/kubectl/go.mod");
    let modules = fs::read_to_string(modules).unwrap();
    let wanted = modules.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubectl v0.")?.split('.').next());
    if wanted == Some(minor) {
        return Ok(found);
    }
    Err(format!("kubectl on the PATH is 1.{minor}, 1.{} is needed and cannot be built: {why}", wanted.unwrap_or("?")))
}

/// A server, and how to reach it.
pub struct Ground {
    folder: tempfile::TempDir,
    kubeconfig: PathBuf,
    has: BTreeSet<String>,
    /// Ends with the ground.
    drydock: Option<Child>,
}

impl Ground {
    /// A server that is there already, and what it has beyond an API server and controllers.
    pub fn at(kubeconfig: PathBuf, has: &[&str], kubectl: &Path) -> Self {
        let has = has.iter().map(|word| (*word).to_owned()).collect();
        Self { folder: tools(kubectl), kubeconfig, has, drydock: None }
    }

    /// A drydock with an operator in it.
    pub fn drydock(kubectl: &Path) -> Self {
        let folder = tools(kubectl);
        let kubeconfig = folder.path().join("drydock.kubeconfig");
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway-api");
        let mut drydock = Command::new(env!("CARGO_BIN_EXE_seaway"))
            .args(["drydock", "--with-operator", "--json", "--log-level=error", "--kubeconfig"])
            .arg(&kubeconfig)
            .arg("--apply")
            .arg(examples.join("00-namespaces.yaml"))
            .arg("--apply")
            .arg(examples.join("gateway.yaml"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It says how to reach it once it can be reached.
        let mut line = String::new();
        BufReader::new(drydock.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("kubeconfig"), "seaway drydock said {line:?}");
        let has = ["drydock", "logs", "operator", "pods"].map(str::to_owned).into();
        Self { folder, kubeconfig, has, drydock: Some(drydock) }
    }

    /// A place for one story: its namespace, made anew, and a kubeconfig that points there.
    pub fn scene(&self, story: &Story) -> Scene<'_> {
        let folder = self.folder.path().join(&story.name);
        fs::create_dir(&folder).unwrap();
        fs::copy(&self.kubeconfig, folder.join("kubeconfig")).unwrap();
        let scene = Scene { ground: self, folder, namespace: story.namespace.clone() };
        if let Some(namespace) = &story.namespace {
            let made = scene.run(&format!(
                "kubectl delete namespace {namespace} --ignore-not-found && kubectl create namespace {namespace} && \
                 kubectl config set-context --current --namespace={namespace}"
            ));
            assert_eq!(made.code, 0, "{}", made.text);
        }
        scene
    }
}

/// A folder with the commands of the stories in it.
fn tools(kubectl: &Path) -> tempfile::TempDir {
    let folder = tempfile::TempDir::new().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(kubectl, bin.join("kubectl")).unwrap();
    symlink(env!("CARGO_BIN_EXE_seaway"), bin.join("seaway")).unwrap();
    folder
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Some(drydock) = &mut self.drydock {
            let _ = drydock.kill();
            let _ = drydock.wait();
        }
    }
}

/// Where the commands of one story run.
pub struct Scene<'a> {
    ground: &'a Ground,
    /// The home of its commands; nobody else's.
    folder: PathBuf,
    namespace: Option<String>,
}

/// What a command came to.
pub struct Printed {
    /// Both outputs, as they came.
    pub text: String,
    pub code: i32,
}

impl Scene<'_> {
    /// Whether the server has something a step needs.
    pub fn has(&self, word: &str) -> bool {
        self.ground.has.contains(word)
    }

    /// Runs a shell command next to the manifests.
    pub fn run(&self, command: &str) -> Printed {
        let folder = &self.folder;
        // A file, not a pipe: what a story leaves running in the background must not keep the reader waiting.
        let output = folder.join("output");
        let file = fs::File::create(&output).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(command)
            .current_dir(super::folder().join("manifests"))
            .env("PATH", format!("{}:{path}", self.ground.folder.path().join("bin").display()))
            .env("KUBECONFIG", folder.join("kubeconfig"))
            .env("HOME", folder)
            .env("SCRATCH", folder)
            .env_remove("KUBECTL_EXTERNAL_DIFF")
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        let patience = Instant::now() + PATIENCE;
        let code = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status.code().unwrap_or(-1),
                None if Instant::now() > patience => {
                    let _ = child.kill();
                    let _ = child.wait();
                    break -1;
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        Printed { text: String::from_utf8_lossy(&fs::read(&output).unwrap()).into_owned(), code }
    }
}

impl Drop for Scene<'_> {
    fn drop(&mut self) {
        if let Some(namespace) = &self.namespace {
            self.run(&format!("kubectl delete namespace {namespace} --wait=false"));
        }
    }
}
