//! Takes arguments; gives a `flare` process to talk to, and a client to be told. Ends what it
//! started when it is dropped.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

pub(crate) mod inbox;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Longer than anything here takes; only a test that fails waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The program, without the environment's own settings.
pub(crate) fn flare(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flare"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("FLARE_")) {
        command.env_remove(name);
    }
    command.args(arguments);
    command
}

/// What a command is told that is to keep nothing.
pub(crate) const IN_MEMORY: [&str; 2] = ["--set", "repository.engine=memory"];

/// What keeps a server in memory, unless its arguments say where it keeps things.
fn in_memory(arguments: &[&str]) -> &'static [&'static str] {
    let says = |argument: &&str| argument.contains("repository.");
    if arguments.iter().any(says) { &[] } else { &IN_MEMORY }
}

/// A directory that nobody else uses; gone when the test is.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("flare-{}-{name}", std::process::id()));
        // What a process of the same number left that was killed.
        drop(std::fs::remove_dir_all(&path));
        std::fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Runs a command to its end: exit code, standard output, standard error.
pub(crate) fn run(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// A running server.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    child: Child,
    log: Arc<Mutex<String>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl Server {
    /// Starts one on a free port, clients on this machine allowed, in memory unless the arguments say
    /// otherwise.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_as(flare(&["start"]), arguments)
    }

    /// Starts one with variables that a machine would have set for other programs, too.
    pub(crate) fn start_with(variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        let mut command = flare(&["start"]);
        command.envs(variables.iter().copied());
        Self::start_as(command, arguments)
    }

    /// Starts one that may have so many files open.
    pub(crate) fn start_with_descriptors(limit: u32, arguments: &[&str]) -> Self {
        let mut shell = Command::new("sh");
        let program = env!("CARGO_BIN_EXE_flare");
        shell.args(["-c", &format!("ulimit -n {limit}; exec {program} start \"$@\""), "flare"]);
        Self::start_as(shell, arguments)
    }

    /// Starts one in a directory, on what it keeps there.
    pub(crate) fn start_in(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = flare(&["start"]);
        command.current_dir(folder);
        Self::launch(command, arguments)
    }

    fn start_as(mut command: Command, arguments: &[&str]) -> Self {
        command.args(in_memory(arguments));
        Self::launch(command, arguments)
    }

    fn launch(mut command: Command, arguments: &[&str]) -> Self {
        let guard = ["--set", "delivery.guard.allow=127.0.0.1"];
        let given = |name: &str| arguments.contains(&name);
        let free = if given("--addr") { [].as_slice() } else { &["--addr", "127.0.0.1:0"] };
        command.args(guard).args(free).args(arguments);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let log = Arc::new(Mutex::new(String::new()));
        let addr = loop {
            let mut line = String::new();
            let read = lines.read_line(&mut line).unwrap();
            assert!(read > 0, "the server ended: {}", log.lock().unwrap());
            log.lock().unwrap().push_str(&line);
            if let Some((_, rest)) = line.split_once("listens on http://") {
                let addr: String =
                    rest.chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect();
                break addr.parse().unwrap();
            }
        };
        let shared = Arc::clone(&log);
        let reader = thread::spawn(move || {
            let mut line = String::new();
            while lines.read_line(&mut line).is_ok_and(|read| read > 0) {
                shared.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        Self { addr, child, log, reader: Some(reader) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.wait();
    }

    /// Waits for its end; the log is complete afterwards.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let status = self.child.wait().unwrap();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        status
    }

    /// Bytes of memory it takes.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        request(self.addr, "GET", path, "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, String) {
        request(self.addr, "POST", path, body)
    }

    pub(crate) fn put(&self, path: &str, body: &str) -> (u16, String) {
        request(self.addr, "PUT", path, body)
    }

    /// The id of a new resource, whose documents are users.
    pub(crate) fn users(&self) -> String {
        let resource =
            r#"{"endpoint":"http://api.example.com/users/{id}","change":{"field":"revision"}}"#;
        let (status, resource) = self.post("/resources", resource);
        assert_eq!(status, 201, "{resource}");
        id(&resource)
    }

    /// A resource and a subscription of it at `client`; the path of the subscription.
    pub(crate) fn subscribe(&self, client: &str) -> String {
        let path = format!("/resources/{}/subscriptions", self.users());
        let wish = format!(r#"{{"endpoint":{{"url":"{client}/{{id}}"}}}}"#);
        let (status, subscription) = self.post(&path, &wish);
        assert_eq!(status, 201, "{subscription}");
        format!("{path}/{}", id(&subscription))
    }

    /// Creates a consumer of users from a source, given as a member of a JSON object; what is answered.
    pub(crate) fn consume(&self, users: &str, source: &str) -> (u16, String) {
        let document = r#""document":{"url":"http://api.example.com/users/{/id}"}"#;
        self.post("/consumers", &format!(r#"{{"resource":"{users}",{source},{document}}}"#))
    }

    /// Asks again and again until the answer is as wished; gives it.
    pub(crate) fn until(&self, path: &str, wished: impl Fn(u16, &str) -> bool) -> String {
        const PAUSE: Duration = Duration::from_millis(50);
        for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
            let (status, body) = self.get(path);
            if wished(status, &body) {
                return body;
            }
            thread::sleep(PAUSE);
        }
        panic!("{path} answers {:?}\n{}", self.get(path), self.log())
    }

    /// It is up and answers others.
    pub(crate) fn assert_well(&self) {
        let (status, body) = self.get("/health/live");
        assert_eq!(status, 200, "{body}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The `id` of a JSON object.
pub(crate) fn id(object: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(object).unwrap();
    value["id"].as_str().unwrap().to_owned()
}

/// One request on a connection of its own: status and body.
pub(crate) fn request(addr: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: flare\r\nConnection: close\r\n{kind}Content-Length: {}\r\n\r\n",
        body.len()
    );
    let answer = raw(addr, &[head.as_bytes(), body.as_bytes()]);
    split(&answer)
}

/// Sends bytes as they are; gives all that comes back until the server closes.
pub(crate) fn raw(addr: SocketAddr, parts: &[&[u8]]) -> String {
    let mut stream = connect(addr);
    for part in parts {
        // A server that refuses early closes before it has read everything.
        if stream.write_all(part).is_err() {
            break;
        }
    }
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}

pub(crate) fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Status and body of an answer; status 0 if there is none.
pub(crate) fn split(answer: &str) -> (u16, String) {
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    (status, body.to_owned())
}

/// A client that takes notifications, each after a while, and remembers their paths.
pub(crate) struct Client {
    pub(crate) addr: SocketAddr,
    told: Arc<Mutex<Vec<String>>>,
}

impl Client {
    pub(crate) fn start(after: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&told);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let told = Arc::clone(&shared);
                thread::spawn(move || take(stream, after, &told));
            }
        });
        Self { addr, told }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub(crate) fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

/// Answers requests of one connection until it is closed.
fn take(stream: TcpStream, after: Duration, told: &Mutex<Vec<String>>) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let (mut first, mut length) = (String::new(), 0);
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        thread::sleep(after);
        told.lock().unwrap().push(first.split(' ').nth(1).unwrap().to_owned());
        if writer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").is_err() {
            return;
        }
    }
}
