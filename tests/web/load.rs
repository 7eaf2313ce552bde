//! A hundred clients that ask for deep analyses, and one that opens thousands of connections: probes of
//! others are still answered at once, and memory stays within its limit.

use crate::connections::connect_from;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::VecDeque;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tests::directory::TestDirectory;
use tests::serve_process::ServeProcess;

const CLIENTS: u32 = 100;
const PROBES: usize = 2_000;
const ROUNDS_MAX: usize = 20;
/// The time of 99 % of the probes.
const LIMIT: Duration = Duration::from_millis(20);
const HASH_MIB: u64 = 32;

/// Probes of other clients in a round, and the time of 99 % of them.
const OTHERS_PROBES: usize = 500;
const OTHERS_LIMIT: Duration = Duration::from_millis(50);

/// Keeps asking for the longest analysis until `done`, as the client that a proxy gives this number. Counts
/// refusals and iterations.
fn keep_asking(address: &str, client: u32, done: &AtomicBool, refused: &AtomicU32, iterations: &AtomicU32) {
    while !done.load(Ordering::Relaxed) {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let path = "/v1/analysis?pos=4+4+4+4+4+4+4+4+4+4+4+4&time=60000&lines=6";
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 10.0.0.{client}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut piece = [0; 1 << 16];
        while !done.load(Ordering::Relaxed) {
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => {
                    let text = String::from_utf8_lossy(&piece[..length]);
                    refused.fetch_add(u32::from(text.starts_with("HTTP/1.1 503 ")), Ordering::Relaxed);
                    iterations.fetch_add(text.matches("event: iteration").count() as u32, Ordering::Relaxed);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => panic!("{error}"),
            }
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// The memory of a process, in MiB.
fn resident(served: &ServeProcess) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", served.child().id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

#[test]
#[ignore = "slow tier: measures times under load"]
fn analyses_starve_no_probes() {
    let place = TestDirectory::built(9);
    for analyses in [1, 2] {
        let line = format!(
            "serve --dir run --listen 127.0.0.1:0 --hash {HASH_MIB}MiB --analyses {analyses} --proxy 127.0.0.1"
        );
        let served = ServeProcess::of(place.command(&line));
        // Positions of 9 stones, which a database has, of 12 with captures that lead to it, and the opening.
        let probes = ["2+0+1+1+2+0+1+0+0+0+1+1", "2+0+1+1+2+0+1+2+0+1+1+1", "4+4+4+4+4+4+4+4+4+4+4+4"]
            .map(|position| format!("/v1/probe?pos={position}"));
        let right = probes.each_ref().map(|probe| served.get(probe));
        let sources = ["database", "search", "search"].map(|source| format!("\"source\":\"{source}\""));
        assert!(right.iter().zip(&sources).all(|(answer, source)| answer.contains(source)), "{right:?}");
        let before = resident(&served);
        let (done, refused, iterations) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
        let mut times: [Vec<(Duration, Duration, Duration)>; 3] = Default::default();
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (served, done, refused, iterations) = (&served, &done, &refused, &iterations);
                scope.spawn(move || keep_asking(&served.address, client, done, refused, iterations));
            }
            thread::sleep(Duration::from_secs(1));
            // Other work of the machine disturbs some measurements; what the analyses do, they do all the time.
            for ((probe, right), times) in probes.iter().zip(&right).zip(&mut times) {
                while times.len() < ROUNDS_MAX && times.iter().all(|(p99, ..)| *p99 >= LIMIT) {
                    let mut took: Vec<Duration> = (0..PROBES)
                        .map(|_| {
                            let begun = Instant::now();
                            assert_eq!(served.get(probe), *right);
                            begun.elapsed()
                        })
                        .collect();
                    took.sort_unstable();
                    times.push((took[PROBES * 99 / 100], took[PROBES / 2], took[PROBES - 1]));
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        let after = resident(&served);
        let (refused, iterations) = (refused.into_inner(), iterations.into_inner());
        println!("--analyses {analyses}: {before} to {after} MiB; {refused} refused, {iterations} iterations");
        for (probe, times) in probes.iter().zip(&times) {
            let (p99, median, most) = times.iter().min().unwrap();
            let rounds = times.len();
            println!("  {probe}: p99 {p99:?}, median {median:?}, most {most:?}, round {rounds}");
        }
        assert!(times.iter().all(|times| times.iter().any(|(p99, ..)| *p99 < LIMIT)), "{times:?}");
        assert!(after <= before + HASH_MIB + 32, "{before} to {after} MiB");
        assert!(refused > CLIENTS / 2 && iterations > 0, "{refused} refused, {iterations} iterations");
    }
}

/// Connections that one client holds.
const HELD: usize = 3_000;

/// Keeps opening connections until `done`, sends bytes on each, and reads nothing. Returns how many it opened.
fn keep_connecting(server: SocketAddr, sent: &[u8], done: &AtomicBool) -> usize {
    let (mut held, mut opened) = (VecDeque::new(), 0);
    while !done.load(Ordering::Relaxed) {
        if held.len() == HELD {
            held.pop_front();
            thread::sleep(Duration::from_millis(1));
        }
        let mut stream = TcpStream::connect(server).unwrap();
        // The server may have closed it.
        let _ = stream.write_all(sent);
        held.push_back(stream);
        opened += 1;
    }
    opened
}

#[test]
#[ignore = "slow tier: measures times under load"]
fn connections_starve_no_probes() {
    let open_files_max = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: open_files_max.maximum, ..open_files_max }).unwrap();
    let place = TestDirectory::built(9);
    let served = ServeProcess::start(&place);
    let server: SocketAddr = served.address.parse().unwrap();
    let before = resident(&served);
    let probe = b"GET /v1/probe?pos=2+0+1+1+2+0+1+0+0+0+1+1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let page = b"GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(8);
    for (what, sent) in [("idle", &b""[..]), ("slow heads", b"GET /v1/pro"), ("slow readers", &page)] {
        let done = AtomicBool::new(false);
        let mut p99 = Vec::new();
        let opened = thread::scope(|scope| {
            let opened = scope.spawn(|| keep_connecting(server, sent, &done));
            while p99.len() < ROUNDS_MAX && p99.iter().all(|p99| *p99 >= OTHERS_LIMIT) {
                let mut took: Vec<Duration> = (0..OTHERS_PROBES)
                    .map(|number| {
                        let begun = Instant::now();
                        let mut stream = connect_from([127, 0, 0, 2 + (number % 3) as u8], server);
                        stream.write_all(probe).unwrap();
                        let mut answer = String::new();
                        stream.read_to_string(&mut answer).unwrap();
                        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
                        begun.elapsed()
                    })
                    .collect();
                took.sort_unstable();
                p99.push(took[OTHERS_PROBES * 99 / 100]);
            }
            done.store(true, Ordering::Relaxed);
            opened.join().unwrap()
        });
        println!("{what}: {opened} connections, p99 of others {p99:?}, {before} to {} MiB", resident(&served));
        assert!(p99.iter().any(|p99| *p99 < OTHERS_LIMIT), "{what}: {p99:?}");
        assert!(opened > 1024, "{what}: {opened} connections take every place");
    }
    assert!(resident(&served) <= before + 32, "{before} to {} MiB", resident(&served));
}
