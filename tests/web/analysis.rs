//! Analyses over HTTP: streams, limits, clients that leave, full queues, damaged databases; and moves of
//! players beyond the databases.

use crate::http::{fits, get, json_of, listening, packed, run, send, site, text_of};
use crate::oracle::SOLVED;
use axum::body::to_bytes;
use axum::http::header;
use game::Rules;
use game::notation::MoveText;
use game::play::Game;
use game::reference::boards;
use serde_json::{Value, json};
use server::{ServerLimits, Site, router};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Codec;
use tests::directory::TestDirectory;
use tests::serve_process::ServeProcess;
use tower::ServiceExt;

const OPENING: &str = "4-4-4-4-4-4-4-4-4-4-4-4-0-0-S";

/// Splits a stream into its events: name and data.
fn events(text: &str) -> Vec<(String, Value)> {
    let event = |event: &str| {
        let (name, data) = event.split_once('\n').unwrap();
        let data = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        (name.strip_prefix("event: ").unwrap().to_owned(), data)
    };
    text.split_terminator("\n\n").map(event).collect()
}

async fn stream_of(site: &Arc<Site>, path: &str) -> Vec<(String, Value)> {
    let (head, body) = send(site, get(path)).await;
    assert_eq!(head.status(), 200, "{path}: {}", String::from_utf8_lossy(&body));
    assert_eq!(head.headers()[header::CONTENT_TYPE], "text/event-stream");
    assert_eq!(head.headers()[header::CACHE_CONTROL], "no-store");
    events(std::str::from_utf8(&body).unwrap())
}

fn spaced(pits: [u8; 12]) -> String {
    pits.map(|pit| pit.to_string()).join("+")
}

/// Positions of 6 and 7 stones with databases of up to 5: every event fits its schema, and its bounds hold the truth.
#[test]
fn streams_end_with_a_result_and_hold_the_truth() {
    let site = packed();
    run(async {
        let description = json_of(&site, "/v1/openapi.json").await;
        let schema = json!({ "$ref": "#/components/schemas/Analysis" });
        let (mut proved, mut estimated) = (0, 0);
        for stones in 6..=7 {
            for pits in boards(stones).into_iter().step_by(499) {
                let truth = i64::from(SOLVED[usize::from(stones)][&pits]);
                let path = format!("/v1/analysis?pos={}&time=5000&nodes=3000&lines=6", spaced(pits));
                let events = stream_of(&site, &path).await;
                let mut depth = 0;
                for (at, (name, data)) in events.iter().enumerate() {
                    assert_eq!(name, if at + 1 == events.len() { "result" } else { "iteration" }, "{path}");
                    fits(&description, &schema, data).unwrap_or_else(|problem| panic!("{path}: {problem}\n{data}"));
                    assert!(name == "result" || data["depth"].as_i64().unwrap() > depth, "{path}: {data}");
                    depth = data["depth"].as_i64().unwrap();
                    let (low, high) = (data["proved"]["lo"].as_i64().unwrap(), data["proved"]["hi"].as_i64().unwrap());
                    assert!(low <= truth && truth <= high, "{path}: {truth}\n{data}");
                    let estimate = data["estimate"].as_i64().unwrap();
                    assert!(100 * low <= estimate && estimate <= 100 * high, "{path}: {data}");
                    for valued in data["moves"].as_array().unwrap() {
                        let next: Vec<u8> =
                            valued["next"].as_str().unwrap().split(' ').map(|pit| pit.parse().unwrap()).collect();
                        let child: [u8; 12] = next.try_into().unwrap();
                        let left = usize::from(child.iter().sum::<u8>());
                        let value = valued["captures"].as_i64().unwrap() - i64::from(SOLVED[left][&child]);
                        let bounds = &valued["proved"];
                        assert!(
                            bounds["lo"].as_i64().unwrap() <= value && value <= bounds["hi"].as_i64().unwrap(),
                            "{path}: {value}\n{valued}"
                        );
                        assert_eq!(valued["line"][0], valued["pit"]);
                    }
                }
                let (_, last) = events.last().unwrap();
                if last["proved"]["lo"] == last["proved"]["hi"] {
                    assert_eq!((&last["estimate"], last["category"] == "unknown"), (&json!(100 * truth), false));
                    proved += 1;
                } else {
                    estimated += 1;
                }
            }
        }
        assert!(proved > 20 && proved + estimated > 60, "{proved} {estimated}");
    });
}

#[test]
fn one_object_is_returned_on_request() {
    let site = packed();
    run(async {
        // A database holds this position, so that everything is proved at once.
        let known = "pos=0+0+0+0+1+2+1+0+0+0+0+1";
        let probed = json_of(&site, &format!("/v1/probe?{known}")).await;
        let analyzed = json_of(&site, &format!("/v1/analysis?{known}&format=json")).await;
        assert_eq!(analyzed["proved"], json!({ "lo": probed["score"], "hi": probed["score"] }));
        assert_eq!(analyzed["nodes"], 0);
        let values = |reply: &Value, value: fn(&Value) -> &Value| -> BTreeSet<String> {
            reply["moves"]
                .as_array()
                .unwrap()
                .iter()
                .map(|valued| format!("{} {}", valued["pit"], value(valued)))
                .collect()
        };
        assert_eq!(values(&probed, |valued| &valued["value"]), values(&analyzed, |valued| &valued["proved"]["lo"]));
        assert_eq!(values(&probed, |valued| &valued["value"]), values(&analyzed, |valued| &valued["proved"]["hi"]));
        // A player without a move.
        let over = json_of(&site, "/v1/analysis?pos=0+0+0+0+0+0+4+4+4+4+4+4&format=json").await;
        assert_eq!((&over["estimate"], &over["moves"]), (&json!(-2400), &json!([])));
        // After moves, the position has the long form, and the pits are those of the player to move.
        let after = json_of(&site, &format!("/v1/analysis?pos={OPENING}&moves=F&depth=2&format=json")).await;
        assert_eq!(after["position"], "4-4-4-4-4-0-5-5-5-5-4-4-0-0-N");
        assert!(
            after["moves"].as_array().unwrap().iter().all(|valued| "abcdef".contains(valued["pit"].as_str().unwrap()))
        );
        let pits = after["moves"][0]["line"].as_array().unwrap();
        assert!(pits.len() > 1 && pits[1].as_str().unwrap().chars().all(char::is_uppercase), "{after}");
    });
}

#[test]
fn an_analysis_keeps_its_limits() {
    let site = packed();
    run(async {
        let analyzed = async |limits: &str| {
            let reply = json_of(&site, &format!("/v1/analysis?pos={OPENING}&format=json&{limits}")).await;
            let number = |name: &str| reply[name].as_u64().unwrap();
            let at_most = reply["moves"].as_array().unwrap().iter().filter(|valued| valued["at_most"] == true).count();
            (number("depth"), number("nodes"), number("milliseconds"), at_most)
        };
        assert_eq!(analyzed("depth=1").await.0, 1);
        assert_eq!(analyzed("depth=7&time=10000").await.0, 7);
        // The engine looks at its limits every few hundred positions.
        let (_, nodes, _, _) = analyzed("nodes=5000&time=10000").await;
        assert!((5_000..6_000).contains(&nodes), "{nodes}");
        let (_, _, milliseconds, _) = analyzed("time=200").await;
        assert!((200..2_000).contains(&milliseconds), "{milliseconds}");
        assert_eq!(analyzed("depth=6&lines=6&time=10000").await.3, 0);
        assert!(analyzed("depth=6&time=10000").await.3 > 0);
    });
}

/// The two stones circle: a position that the game has seen ends it, and is worth a draw.
#[test]
fn the_game_before_the_position_counts() {
    let site = packed();
    run(async {
        let path = "/v1/analysis?pos=1-0-0-0-0-0-1-0-0-0-0-0-23-23-S&moves=AaBbCcDdEe&format=json";
        assert_eq!(json_of(&site, path).await["position"], "0-0-0-0-0-1-0-0-0-0-0-1-23-23-S");
        let (status, refusal) = text_of(&site, get(&path.replace("AaBbCcDdEe", "AaBbCcDdEeFf"))).await;
        assert!(status == 400 && refusal.contains("the position is repeated"), "{refusal}");
        let (status, refusal) = text_of(&site, get(&path.replace("AaBbCcDdEe", "AA"))).await;
        assert!(status == 400 && refusal.contains("move 2, A: North is to move"), "{refusal}");
    });
}

/// Analyses beyond those that run and those that wait are refused. One that ends, or whose client leaves, makes room.
#[test]
fn a_full_queue_refuses_until_a_client_leaves() {
    let wait = Duration::from_secs(20);
    let limits =
        ServerLimits { analyses_max: 1, analyses_waiting_max: 1, analysis_wait: wait, ..ServerLimits::default() };
    let site = site(Codec::Packed, false, limits);
    run(async {
        let endless = format!("/v1/analysis?pos={OPENING}&time=60000");
        let first = router(Arc::clone(&site)).oneshot(get(&endless)).await.unwrap();
        assert_eq!(first.status(), 200);
        let short = format!("/v1/analysis?pos={OPENING}&depth=3&format=json");
        let (shared, path) = (Arc::clone(&site), short.clone());
        let second = tokio::spawn(async move {
            loop {
                let (status, body) = text_of(&shared, get(&path)).await;
                if status == 200 {
                    return serde_json::from_str::<Value>(&body).unwrap();
                }
            }
        });
        let end = Instant::now() + wait;
        let refused = loop {
            // In the place of the second one, this one waits, until it leaves.
            let refused = tokio::time::timeout(Duration::from_millis(50), send(&site, get(&short))).await;
            if let Ok(refused) = refused {
                break refused;
            }
            assert!(Instant::now() < end, "nothing is refused");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!(refused.0.status(), 503);
        assert!(refused.0.headers().contains_key(header::RETRY_AFTER));
        let refusal: Value = serde_json::from_slice(&refused.1).unwrap();
        assert_eq!(refusal["code"], "busy", "{refusal}");
        assert!(!second.is_finished());
        let left = Instant::now();
        drop(first);
        assert_eq!(second.await.unwrap()["depth"], 3);
        assert!(left.elapsed() < Duration::from_secs(5), "{:?}", left.elapsed());
        // Moves of players have a queue of their own, and a wait has an end.
        let brief = ServerLimits { analysis_wait: Duration::from_millis(1), ..limits };
        let site = self::site(Codec::Packed, false, brief);
        let first = router(Arc::clone(&site)).oneshot(get(&endless)).await.unwrap();
        assert_eq!(text_of(&site, get(&short)).await.0, 503);
        assert_eq!(text_of(&site, get(&format!("/v1/choose?pos={OPENING}&level=beginner"))).await.0, 200);
        drop(first);
    });
}

/// Sends a request for an endless analysis, and reads up to its first event. The one before it may still be ending.
fn endless(address: SocketAddr) -> TcpStream {
    for _ in 0..100 {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /v1/analysis?pos={OPENING}&time=60000 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut seen = String::new();
        while !seen.contains("event: iteration") && !seen.starts_with("HTTP/1.1 503") {
            let mut piece = [0; 4096];
            let length = stream.read(&mut piece).unwrap();
            assert!(length > 0, "{seen}");
            seen += &String::from_utf8_lossy(&piece[..length]);
        }
        if seen.contains("event: iteration") {
            return stream;
        }
    }
    panic!("every analysis is refused");
}

/// The status of a short analysis.
fn short(address: SocketAddr) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    let path = format!("/v1/analysis?pos={OPENING}&depth=1&format=json");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer[9..12].parse().unwrap()
}

/// A client that closes its connection, or only its sending side, ends its search; a stopping server ends all.
#[test]
fn searches_end_with_their_clients_and_the_server() {
    let limits = ServerLimits { analyses_max: 1, analyses_waiting_max: 0, ..ServerLimits::default() };
    let (address, end) = listening(limits);
    for _ in 0..5 {
        let client = endless(address);
        assert_eq!(short(address), 503);
        let left = Instant::now();
        drop(client);
        while short(address) != 200 {
            assert!(left.elapsed() < Duration::from_secs(2), "a search goes on without its client");
        }
        println!("a search ended {:?} after its client had left", left.elapsed());
    }
    let mut half_closed = endless(address);
    half_closed.shutdown(Shutdown::Write).unwrap();
    let mut rest = String::new();
    half_closed.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("event: result"), "{rest}");
    let mut last = endless(address);
    let stopped = Instant::now();
    end();
    assert!(stopped.elapsed() < Duration::from_secs(5), "{:?}", stopped.elapsed());
    let mut rest = String::new();
    last.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("event: result"), "{rest}");
}

/// A database that is damaged while the server runs is an error of the analyses that need it; the server,
/// games and other requests go on, and so do these analyses once the file is intact again.
#[test]
fn a_database_that_breaks_is_an_error_of_the_request() {
    let place = TestDirectory::built(7);
    let path = place.path("run/databases/07.awari");
    let bytes = fs::read(&path).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let server = ServeProcess::start(&place);
    let nine = "1+1+1+1+0+1+1+0+1+1+1+0";
    let asked =
        [format!("/v1/analysis?pos={nine}&nodes=20000"), format!("/v1/analysis?pos={nine}&nodes=20000&format=json")];
    let choose = format!("/v1/choose?pos={nine}&level=strong&seed=1");
    // All but the header and the checksums at the end.
    let inverted: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
    let blocks = bytes.len() / 8..bytes.len() / 2;
    file.write_all_at(&inverted[blocks.clone()], blocks.start as u64).unwrap();
    let is_error = |refusal: &Value| ["damaged", "unreadable"].contains(&refusal["code"].as_str().unwrap_or_default());
    for (number, path) in asked.iter().enumerate() {
        let (status, body) = server.request(path);
        // A stream that has sent events by then ends with the error.
        if number == 0 && status == 200 {
            assert!(body.contains("event: error") && !body.contains("event: result"), "{body}");
        } else {
            let refusal: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{path}: {body}"));
            assert!(status == 503 && is_error(&refusal), "{path}: {status} {refusal}");
        }
    }
    // A game goes on without the database.
    assert_eq!(server.json(&choose)["source"], "search");
    let other = server.json("/v1/analysis?pos=0+0+0+0+0+2+1+0+0+0+0+0&format=json");
    assert_eq!((&other["stones"], &other["nodes"]), (&json!(3), &json!(0)));
    assert_eq!(server.request("/healthz").0, 200);
    file.write_all_at(&bytes[blocks.clone()], blocks.start as u64).unwrap();
    assert!(server.get(&asked[0]).contains("event: result"));
    asked[1..].iter().for_each(|path| _ = server.json(path));
}

/// Every level plays from the opening to the end of the game, and the same seed gives the same move.
#[test]
fn every_level_plays_from_the_opening() {
    let site = packed();
    run(async {
        for level in ["beginner", "casual", "strong", "expert", "perfect"] {
            let path = format!("/v1/choose?pos={OPENING}&moves=FfBd&level={level}");
            let chosen = json_of(&site, &path).await;
            let again = json_of(&site, &format!("{path}&seed={}", chosen["seed"])).await;
            assert_eq!(chosen, again);
        }
        let mut first = BTreeSet::new();
        for level in ["beginner", "casual"] {
            let (mut game, mut letters) = (Game::new(Rules::AWARI), String::new());
            while game.outcome().is_none() {
                let path = format!("/v1/choose?pos={OPENING}&moves={letters}&level={level}&seed={}", letters.len());
                let chosen = json_of(&site, &path).await;
                let letter = chosen["move"]["pit"].as_str().unwrap();
                let played: MoveText = letter.parse().unwrap();
                let turn = game.play(played.pit).unwrap();
                assert_eq!((turn.side, json!(turn.captured)), (played.side, chosen["move"]["captures"].clone()));
                letters += letter;
                assert!(letters.len() < 2000, "{level}: {letters}");
            }
            first.insert(letters);
        }
        assert_eq!(first.len(), 2, "{first:?}");
    });
}

/// Bodies are not read further than a client reads: a slow client gets every event.
#[test]
fn a_slow_client_gets_every_event() {
    let site = packed();
    run(async {
        let path = format!("/v1/analysis?pos={OPENING}&depth=9&time=20000");
        let response = router(Arc::clone(&site)).oneshot(get(&path)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let text = to_bytes(response.into_body(), 1 << 24).await.unwrap();
        let depths: Vec<Value> =
            events(std::str::from_utf8(&text).unwrap()).into_iter().map(|(_, data)| data["depth"].clone()).collect();
        assert_eq!(depths, [1, 2, 3, 4, 5, 6, 7, 8, 9, 9].map(Value::from));
    });
}
