//! `awari serve` as its users meet it: it says where it is, answers from the databases of a run, and ends when told.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

mod place;
use place::{Place, ended_child, signal};

/// The body of an answer with status 200.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
    body.to_owned()
}

#[test]
fn a_server_answers_until_it_is_told_to_stop() {
    let place = Place::built(5);
    for name in ["INT", "TERM"] {
        let mut command = place.command(&["serve", "--dir", "run", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix('/')).unwrap();

        let served: Value = serde_json::from_str(&get(address, "/v1/probe?pos=0+0+0+0+1+2+1+0+0+0+0+1")).unwrap();
        let probed = place.awari(&["probe", "--dir", "run", "--json", "0 0 0 0 1 2 1 0 0 0 0 1"]).is(0).json();
        for field in ["position", "stones", "score", "source"] {
            assert_eq!(served[field], probed[field], "{field}");
        }
        // What the run has counted is shown, and counts every position.
        let database: Value = serde_json::from_str(&get(address, "/v1/databases/5")).unwrap();
        let counts = database["histogram"].as_array().unwrap().iter();
        let total: u64 = counts.map(|one| one["positions"].as_u64().unwrap()).sum();
        assert_eq!((Some(total), total), (database["positions"].as_u64(), 4368));
        assert!(get(address, "/").contains("<title>Awari oracle</title>"));

        signal(&child, name);
        ended_child(child).is(0).says(&["stopping"]);
    }
}

#[test]
fn what_cannot_be_served_is_said() {
    let place = Place::built(1);
    place.awari(&["serve", "--dir", "nowhere"]).is(3);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    place.awari(&["serve", "--dir", "run", "--listen", &address]).is(12).says(&[&address, "--listen"]);
}
