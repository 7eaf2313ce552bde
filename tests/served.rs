//! `awari serve` under way.

// Not every test that has one needs all of it.
#![allow(dead_code)]

use crate::place::Place;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A server of the databases of a place. It is killed when nobody needs it any more.
pub(crate) struct Served {
    /// Nothing once it was given away.
    child: Option<Child>,
    /// Host and port.
    pub(crate) address: String,
}

impl Served {
    pub(crate) fn start(place: &Place) -> Served {
        Served::start_at(place, "127.0.0.1:0")
    }

    pub(crate) fn start_at(place: &Place, listen: &str) -> Served {
        Served::of(place.command(&["serve", "--dir", "run", "--listen", listen]))
    }

    pub(crate) fn of(mut command: Command) -> Served {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix('/')).unwrap().to_owned();
        Served { child: Some(child), address }
    }

    /// The body of an answer with status 200.
    pub(crate) fn get(&self, path: &str) -> String {
        let (status, body) = self.ask(path);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Status and body of an answer.
    pub(crate) fn ask(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).and_then(|code| code.parse().ok());
        (status.unwrap(), body.to_owned())
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path)).unwrap()
    }

    /// The process.
    pub(crate) fn child(&self) -> &Child {
        self.child.as_ref().unwrap()
    }

    /// The process, for who wants to see it end.
    pub(crate) fn into_child(mut self) -> Child {
        self.child.take().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
