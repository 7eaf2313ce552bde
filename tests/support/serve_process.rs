//! A process of `awari serve`.

use crate::directory::TestDirectory;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A server of the databases in a test directory, killed when dropped.
pub struct ServeProcess {
    /// `None` after `into_child`.
    child: Option<Child>,
    /// Host and port.
    pub address: String,
}

impl ServeProcess {
    /// Starts a server on a free port.
    pub fn start(place: &TestDirectory) -> ServeProcess {
        ServeProcess::start_at(place, "127.0.0.1:0")
    }

    /// Starts a server on an address.
    pub fn start_at(place: &TestDirectory, listen: &str) -> ServeProcess {
        ServeProcess::of(place.command(&format!("serve --dir run --listen {listen}")))
    }

    /// Runs a command that starts a server, and waits for its address.
    pub fn of(mut command: Command) -> ServeProcess {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix('/')).unwrap().to_owned();
        ServeProcess { child: Some(child), address }
    }

    /// The body of an answer with status 200.
    pub fn get(&self, path: &str) -> String {
        let (status, body) = self.request(path);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Status and body of an answer.
    pub fn request(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).and_then(|code| code.parse().ok());
        (status.unwrap(), body.to_owned())
    }

    /// The JSON of an answer with status 200.
    pub fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path)).unwrap()
    }

    /// The process.
    pub fn child(&self) -> &Child {
        self.child.as_ref().unwrap()
    }

    /// Gives up the process, which is then not killed.
    pub fn into_child(mut self) -> Child {
        self.child.take().unwrap()
    }
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Fails where the process has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
