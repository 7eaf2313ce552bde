//! The oracle over HTTP: answers compared with the oracle itself, routes and statuses compared with the OpenAPI
//! description, and refused requests.

use crate::oracle::{databases, library};
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode, header};
use disk::{Disk, MemoryDisk};
use game::notation::PositionText;
use game::reference::{self, boards};
use game::{Board, PositionSet};
use oracle::Oracle;
use search::Evaluation;
use serde_json::{Value, json};
use server::{Catalogue, ClientAddress, Server, ServerLimits, Site, SiteEngine, router};
use std::collections::BTreeSet;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use store::Codec;
use tower::ServiceExt;

const STONES_MAX: u8 = 5;

/// A site with databases of 0 to 5 stones; that of 4 can be truncated.
pub(crate) fn site(codec: Codec, damaged: bool, limits: ServerLimits) -> Arc<Site> {
    let disk = MemoryDisk::new();
    databases(&disk, STONES_MAX.into(), PositionSet::All, codec);
    if damaged {
        disk.truncate(Path::new("databases/04.awari"), 100).unwrap();
    }
    let library = library(&disk).unwrap();
    let catalogue = Catalogue::new(&library).with_histogram(1, [(-1, 10), (1, 2)]);
    let engine = SiteEngine::new(library.rules(), 1 << 20, Evaluation::default(), || {}).unwrap();
    Site::new(Oracle::new(library, 1 << 20), catalogue, engine, None, limits)
}

pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(work)
}

pub(crate) async fn send(site: &Arc<Site>, request: Request<Body>) -> (Response<()>, Vec<u8>) {
    let response = router(Arc::clone(site)).oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    (Response::from_parts(head, ()), to_bytes(body, 1 << 24).await.unwrap().to_vec())
}

pub(crate) fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

/// Returns the status and the body of an answer.
pub(crate) async fn text_of(site: &Arc<Site>, request: Request<Body>) -> (u16, String) {
    let (head, body) = send(site, request).await;
    (head.status().as_u16(), String::from_utf8(body).unwrap())
}

pub(crate) async fn json_of(site: &Arc<Site>, path: &str) -> Value {
    let (status, body) = text_of(site, get(path)).await;
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

/// A site of packed databases.
pub(crate) fn packed() -> Arc<Site> {
    site(Codec::Packed, false, ServerLimits::default())
}

fn plus(board: &Board) -> String {
    PositionText::of_board(*board).to_string().replace(' ', "+")
}

/// Every position of 5 stones, answered from maps and from a cache, before and after the tables are made.
#[test]
fn answers_follow_the_rules() {
    let solved = reference::solve_up_to(STONES_MAX);
    for codec in [Codec::Packed, Codec::Zstd] {
        let site = site(codec, false, ServerLimits::default());
        run(async {
            for (number, pits) in boards(STONES_MAX).into_iter().enumerate() {
                if number == 100 {
                    site.warm();
                }
                let score = solved[usize::from(STONES_MAX)][&pits];
                let reply = json_of(&site, &format!("/v1/probe?pos={}", plus(&Board(pits)))).await;
                assert_eq!(reply["score"], score, "{reply}");
                let category = ["loss", "draw", "win"][(score.signum() + 1) as usize];
                assert_eq!(reply["category"], category, "{reply}");
                let mut last = i64::MAX;
                let mut named = BTreeSet::new();
                for valued in reply["moves"].as_array().unwrap() {
                    let pit = valued["pit"].as_str().unwrap();
                    named.insert(pit.to_owned());
                    let at = usize::from(pit.as_bytes()[0] - b'A');
                    let reference::ReferenceMove::Legal { captured, child } = reference::moves(pits)[at] else {
                        panic!("{valued} is not legal")
                    };
                    let left = usize::from(STONES_MAX - captured);
                    let value = i64::from(captured as i8 - solved[left][&child]);
                    assert_eq!((&valued["value"], &valued["captures"]), (&json!(value), &json!(captured)));
                    assert_eq!(valued["loss"], i64::from(score) - value);
                    assert_eq!(valued["best"], value == i64::from(score));
                    assert_eq!(valued["next"], PositionText::of_board(Board(child)).to_string());
                    assert!(value <= last, "{reply}");
                    last = value;
                }
                named.extend(
                    reply["illegal"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|illegal| illegal["pit"].as_str().unwrap().to_owned()),
                );
                assert_eq!(named.len(), 6, "{reply}");
            }
        });
    }
}

#[test]
fn the_long_notation_keeps_seats_and_stores() {
    let site = packed();
    run(async {
        // North has two stones in f, and with them takes one of South's pits.
        let reply = json_of(&site, "/v1/probe?pos=1-1-0-0-1-0-0-0-0-0-0-2-20-23-N").await;
        assert_eq!(reply["position"], "1-1-0-0-1-0-0-0-0-0-0-2-20-23-N");
        let only = &reply["moves"][0];
        assert_eq!((&only["pit"], &only["captures"]), (&json!("f"), &json!(4)), "{reply}");
        assert_eq!(only["next"], "0-0-0-0-1-0-0-0-0-0-0-0-20-27-S");
        let line = json_of(&site, "/v1/mainline?pos=1-1-0-0-1-0-0-0-0-0-0-2-20-23-N").await;
        assert_eq!(line["moves"][0]["pit"], "f");
        assert_eq!(line["moves"][1]["pit"], "E");
    });
}

#[test]
fn chosen_moves_repeat_with_their_seed() {
    let site = packed();
    run(async {
        let ask = "/v1/choose?pos=1+1+0+0+1+1+1+0+0+0+0+0&level=beginner";
        let mut seen = BTreeSet::new();
        for _ in 0..40 {
            let chosen = json_of(&site, ask).await;
            let again = json_of(&site, &format!("{ask}&seed={}", chosen["seed"])).await;
            assert_eq!(chosen, again);
            seen.insert(chosen["move"]["pit"].to_string());
        }
        assert!(seen.len() > 1, "{seen:?}");
        let (fresh, _) = send(&site, get(ask)).await;
        assert_eq!(fresh.headers()[header::CACHE_CONTROL], "no-store");
        let over = json_of(&site, "/v1/choose?pos=0+0+0+0+0+0+1+0+0+0+0+0&level=perfect").await;
        assert_eq!(over["move"], Value::Null);
    });
}

#[test]
fn entity_tags_identify_databases() {
    let (all, damaged) = (packed(), site(Codec::Packed, true, ServerLimits::default()));
    run(async {
        let path = "/v1/probe?pos=0+0+0+0+0+2+1+0+0+0+0+0";
        let (first, body) = send(&all, get(path)).await;
        let tag = first.headers()[header::ETAG].clone();
        assert_eq!(first.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], "*");
        assert!(!body.is_empty());
        for (known, expected) in [(tag.to_str().unwrap(), 304), ("\"other\"", 200)] {
            let request = Request::get(path).header(header::IF_NONE_MATCH, known).body(Body::empty()).unwrap();
            let (head, body) = send(&all, request).await;
            assert_eq!((head.status().as_u16(), body.is_empty()), (expected, expected == 304));
            assert_eq!(head.headers()[header::ETAG], tag);
        }
        let (other, _) = send(&damaged, get(path)).await;
        assert_ne!(other.headers()[header::ETAG], tag);
        // An invalid request stays invalid with a tag.
        let request = Request::get("/v1/probe?pos=x").header(header::IF_NONE_MATCH, &tag).body(Body::empty()).unwrap();
        assert_eq!(send(&all, request).await.0.status(), 400);
    });
}

#[test]
fn other_origins_are_allowed() {
    let site = packed();
    run(async {
        let request = Request::options("/v1/probe").body(Body::empty()).unwrap();
        let (head, _) = send(&site, request).await;
        assert_eq!(head.status(), StatusCode::NO_CONTENT);
        assert!(head.headers()[header::ACCESS_CONTROL_ALLOW_METHODS].to_str().unwrap().contains("POST"));
    });
}

#[test]
fn the_page_shows_positions_without_a_script() {
    let site = packed();
    run(async {
        let page = async |path: &str| text_of(&site, get(path)).await;
        let (status, shown) = page("/?pos=1-1-0-0-1-0-0-0-0-0-0-2-20-23-N").await;
        assert_eq!(status, 200);
        for part in [
            "North to move wins by 3 stones",
            "href=\"./?pos=1-1-0-0-1-0-0-0-0-0-0-2-20-23-N&amp;moves=f\"",
            "<th scope=\"row\">f</th>",
            "+3 win",
        ] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
        let (_, hidden) = page("/?pos=1-1-0-0-1-0-0-0-0-0-0-2-20-23-N&hide=1").await;
        assert!(hidden.contains("&amp;moves=f&amp;hide=1\""));
        assert!(!hidden.contains("+3") && hidden.contains("North to move."), "{hidden}");
        let (_, played) = page("/?pos=1-1-0-0-1-0-0-0-0-0-0-2-20-23-N&moves=fE&at=1").await;
        assert!(played.contains("South to move"), "{played}");
        for part in ["&amp;moves=fE\">Forward", "&amp;moves=fE&amp;at=0\">← Back", "&amp;moves=fE\"><span"] {
            assert!(played.contains(part), "{part} is not in\n{played}");
        }
        // The mover gives away its last stone.
        let (_, single) = page("/?pos=0+0+0+0+0+1+0+0+0+0+0+0").await;
        for part in [
            "id=\"line\">Best play: <a href=\"./?pos=0-0-0-0-0-1-0-0-0-0-0-0-0-0-S&amp;moves=F\" data-moves=\"F\">F</a>",
            "<rect class=\"loss now\" x=\"1\"",
            "All 12 positions of 1 stone by score, −1 to +1; 83.3\u{a0}% score −1 like this one",
        ] {
            assert!(single.contains(part), "{part} is not in\n{single}");
        }
        let (_, opening) = page("/").await;
        assert!(opening.contains("no 48-stone database here"), "{opening}");
        for (bad, part) in [
            ("/?pos=%3Cb%3E+0+0+0+0+0+0+0+0+0+0+0", "found `&lt;b&gt;`"),
            ("/?moves=F3", "move 2, 3: expected a pit"),
            ("/?moves=FF", "move 2, F: North is to move"),
            ("/?pos=0-0-0-0-0-0-1-0-0-0-0-0-0-0-S&moves=A", "move 1, A: the game is over"),
        ] {
            let (status, shown) = page(bad).await;
            assert!(status == 400 && shown.contains(part), "{bad}: {shown}");
        }
        // Unfinished searches are not cached.
        let busy = ServerLimits { searches_max: 0, queue_wait: Duration::ZERO, ..ServerLimits::default() };
        for (limits, codec, part) in [
            (ServerLimits::default(), Codec::Packed, "id=\"line\""),
            // The maps have the values, but the line needs a search.
            (busy, Codec::Packed, "id=\"moves\""),
            (busy, Codec::Zstd, "the server is busy"),
        ] {
            let site = self::site(codec, false, limits);
            site.warm();
            let (head, body) = send(&site, get("/?pos=0+0+0+0+0+2+1+0+0+0+0+0")).await;
            let text = String::from_utf8(body).unwrap();
            assert!(text.contains(part), "{text}");
            let (is_whole, kept) = (limits == ServerLimits::default(), &head.headers()[header::CACHE_CONTROL]);
            assert_eq!((kept == "no-store", text.contains("id=\"line\"")), (!is_whole, is_whole), "{text}");
        }
        for path in ["/app.js", "/analysis.js", "/board.js", "/requests.js", "/state.js", "/style.css"] {
            assert_eq!(page(path).await.0, 200, "{path}");
        }
    });
}

#[test]
fn a_wrong_query_is_quoted_in_the_error() {
    let site = packed();
    run(async {
        let pos = "pos=0+0+0+0+0+2+1+0+0+0+0+0";
        let number = "expected a whole number, at most 4294967295";
        for (path, expected) in [
            ("/v1/probe".to_owned(), "missing parameter `pos`".to_owned()),
            (format!("/v1/probe?{pos}&more=1"), "unknown parameter `more`, expected `pos`".to_owned()),
            (format!("/v1/probe?{pos}&{pos}"), "duplicate parameter `pos`".to_owned()),
            ("/v1/choose?level=casual".to_owned(), "missing parameter `pos`".to_owned()),
            (format!("/v1/choose?{pos}&level=casual&seed=x"), format!("seed: {number}")),
            (format!("/v1/choose?{pos}&level=casual&seed=4294967296"), format!("seed: {number}")),
            (format!("/v1/analysis?{pos}&time=1.5"), format!("time: {number}")),
            (format!("/v1/analysis?{pos}&time=0"), "time: expected a whole number from 1 to 60000, found 0".to_owned()),
            (
                format!("/v1/analysis?{pos}&time=60001"),
                "time: expected a whole number from 1 to 60000, found 60001".to_owned(),
            ),
            (format!("/v1/analysis?{pos}&lines=7"), "lines: expected a whole number from 1 to 6, found 7".to_owned()),
            (format!("/v1/analysis?{pos}&nodes=-1"), format!("nodes: {number}")),
            (
                format!("/v1/analysis?{pos}&depth=0"),
                "depth: expected a whole number from 1 to 4294967295, found 0".to_owned(),
            ),
            (
                format!("/v1/analysis?{pos}&format=xml"),
                "format: unknown variant `xml`, expected `events` or `json`".to_owned(),
            ),
            (
                format!("/v1/analysis?{pos}&stop=1"),
                "unknown parameter `stop`, expected one of `pos`, `moves`, `time`, `nodes`, `depth`, `lines`, `format`"
                    .to_owned(),
            ),
            ("/v1/analysis".to_owned(), "missing parameter `pos`".to_owned()),
            (format!("/v1/mainline?{pos}&moves=-1"), format!("moves: {number}")),
            ("/v1/transcript?moves=F".to_owned(), "missing parameter `pos`".to_owned()),
        ] {
            let (status, body) = text_of(&site, get(&path)).await;
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(status, 400);
            assert_eq!((&body["code"], &body["message"]), (&json!("bad-query"), &json!(expected)), "{path}");
        }
        let (_, page) = text_of(&site, get(&format!("/?{pos}&{pos}"))).await;
        assert!(page.contains("duplicate parameter `pos`"), "{page}");
    });
}

#[test]
fn games_are_read_and_written() {
    let site = packed();
    run(async {
        let read = async |text: &str| {
            let request = Request::post("/v1/transcript").body(Body::from(text.to_owned())).unwrap();
            let (status, body) = text_of(&site, request).await;
            (status, serde_json::from_str::<Value>(&body).unwrap())
        };
        let start = "0-0-0-0-0-2-1-1-0-0-0-1-20-23-N";
        let text = format!("[Event \"a \\\"b\\\"\"]\n[FEN \"{start}\"]\n1... a1 {{why?}} (1... b) 2. F2x3 0-1");
        let (status, game) = read(&text).await;
        assert_eq!(status, 200, "{game}");
        assert_eq!((&game["start"], &game["moves"]), (&json!(start), &json!("aF")));
        assert_eq!(game["position"], "0-0-0-0-0-0-1-0-0-0-0-1-23-23-N");
        assert_eq!(game["tags"], json!([{ "name": "Event", "value": "a \"b\"" }]));
        assert_eq!(game["over"], Value::Null);
        let written = text_of(&site, get(&format!("/v1/transcript?pos={start}&moves=aF"))).await;
        assert_eq!(written, (200, format!("[Game \"Awari\"]\n[FEN \"{start}\"]\n\n1... a 2. F\n*\n")));
        assert_eq!(read(&written.1).await.1["moves"], "aF");
        // By other rules the same moves may be wrong.
        for (moves, status) in [("F", 400), ("F f", 400), ("", 400)] {
            let (found, refused) = read(&format!("[Variant \"Oware\"]\n{moves}")).await;
            assert_eq!((found, &refused["code"]), (status, &json!("bad-transcript")), "{refused}");
            assert!(refused["message"].as_str().unwrap().contains("variant oware"), "{refused}");
        }
        assert_eq!(read("[Variant \"awari\"]\nF").await.0, 200);
        // By those of oware the move is illegal, since it does not feed.
        let (found, refused) = read("[Variant \"oware\"]\n[FEN \"1-0-0-0-0-0-0-0-0-0-0-0-24-23-S\"]\nA").await;
        assert!(found == 400 && refused["message"].as_str().unwrap().contains("variant oware"), "{refused}");
        // Two stones circle until the position repeats; a further move is an error that names the repetition.
        let round = "[FEN \"1-0-0-0-0-0-1-0-0-0-0-0-23-23-S\"] AaBbCcDdEeFf AaB";
        let (status, game) = read(round).await;
        assert_eq!(status, 200, "{game}");
        let over = &game["over"];
        assert_eq!((&over["end"], &over["lead"]), (&json!("repeats"), &json!(0)), "{game}");
        assert_eq!((&over["after"], game["moves"].as_str().unwrap().len()), (&json!(12), 15), "{game}");
        for (text, part) in [
            ("F4 F4", "move 2, `F4`: North is to move"),
            ("F4 f4 B4", "move 3: B4 says 4 stones, pit B holds 5"),
            ("[FEN \"4-4\"]", "the tag FEN: "),
            ("1. what", "move 1: expected a move"),
            ("F f *\n\nE e 1-0\nwhat", "game 3, line 4: move 1: expected a move"),
            ("F f *\n{E e *", "line 2: the comment that begins here does not end"),
            ("[Variant \"Kalah\"] F", "there are no rules \"Kalah\"; known are awari, "),
        ] {
            let (status, refusal) = read(text).await;
            assert_eq!((status, &refusal["code"]), (400, &json!("bad-transcript")));
            assert!(refusal["message"].as_str().unwrap().contains(part), "{refusal}");
        }
        // The first of several games, or a chosen one.
        let three = "[Round \"1\"]\nF! f?! *\n\n[Round \"2\"]\nE $1 e 1-0\n\n[Round \"3\"]\n*\n";
        for (query, game, moves) in [("", 1, "Ff"), ("?game=1", 1, "Ff"), ("?game=2", 2, "Ee"), ("?game=3", 3, "")] {
            let request = Request::post(format!("/v1/transcript{query}")).body(Body::from(three)).unwrap();
            let read: Value = serde_json::from_str(&text_of(&site, request).await.1).unwrap();
            assert_eq!(
                (&read["game"], &read["games"], &read["moves"]),
                (&json!(game), &json!(3), &json!(moves)),
                "{read}"
            );
            assert_eq!(read["tags"][0]["value"], game.to_string());
        }
        for query in ["game=0", "game=4", "game=x", "number=1"] {
            let request = Request::post(format!("/v1/transcript?{query}")).body(Body::from(three)).unwrap();
            let (status, refusal) = text_of(&site, request).await;
            assert!(status == 400 && refusal.contains("\"bad-query\""), "{query}: {refusal}");
        }
        let bytes = Request::post("/v1/transcript").body(Body::from(vec![0xff, 0xfe])).unwrap();
        assert_eq!(send(&site, bytes).await.0.status(), 400);
        let (_, empty) = text_of(&site, get("/v1/transcript?pos=4+4+4+4+4+4+4+4+4+4+4+4")).await;
        assert_eq!(empty, "[Game \"Awari\"]\n\n*\n");
    });
}

/// A body that never arrives.
struct Stalled;

impl axum::body::HttpBody for Stalled {
    type Data = axum::body::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<axum::body::Bytes>, Self::Error>>> {
        Poll::Pending
    }
}

/// Requests every route and status of the description, and compares the answers with it.
#[test]
fn the_server_matches_its_description() {
    let (plain, damaged) = (packed(), site(Codec::Packed, true, ServerLimits::default()));
    let none = ServerLimits {
        searches_max: 0,
        queue_wait: Duration::ZERO,
        analyses_max: 0,
        analyses_waiting_max: 0,
        ..ServerLimits::default()
    };
    let busy = site(Codec::Zstd, false, none);
    let strict = ServerLimits { analyses_client_max: 0, searches_client_max: 0, ..ServerLimits::default() };
    let strict = site(Codec::Packed, false, strict);
    let slow = site(Codec::Packed, false, ServerLimits { body: Duration::ZERO, ..ServerLimits::default() });
    run(async {
        let description = json_of(&plain, "/v1/openapi.json").await;
        let known = "pos=0+0+0+0+0+2+1+0+0+0+0+0";
        let unknown = "pos=4+4+4+4+4+4+4+4+4+4+4+4";
        let bounded = "pos=0+0+0+0+2+3+1+0+0+0+0+1";
        let spoilt = "pos=1+1+0+0+0+0+1+1+0+0+0+0";
        let post = |body: String| Request::post("/v1/probe").body(Body::from(body)).unwrap();
        let game = |text: Body| Request::post("/v1/transcript").body(text).unwrap();
        let from_client = |mut request: Request<Body>| {
            request.extensions_mut().insert(ClientAddress::new([127, 0, 0, 1].into()));
            request
        };
        let batch = |positions: &[&str]| post(json!({ "positions": positions }).to_string());
        let tag = send(&plain, get("/healthz")).await;
        assert!(!tag.0.headers().contains_key(header::ETAG));
        let tag = send(&plain, get("/v1/openapi.json")).await.0.headers()[header::ETAG].clone();
        let tagged = Request::get(format!("/v1/probe?{known}")).header(header::IF_NONE_MATCH, tag).body(Body::empty());
        let put = Request::put("/v1/probe").body(Body::empty()).unwrap();
        let long = format!("/v1/probe?pos={}", "0+".repeat(3000));
        let asked: Vec<(&Arc<Site>, &str, Request<Body>, u16)> = vec![
            (&plain, "/v1/probe", get(&format!("/v1/probe?{known}")), 200),
            (&plain, "/v1/probe", get(&format!("/v1/probe?{bounded}")), 200),
            (&plain, "/v1/probe", tagged.unwrap(), 304),
            (&plain, "/v1/probe", get("/v1/probe"), 400),
            (&plain, "/v1/probe", get("/v1/probe?pos=1+2"), 400),
            (&plain, "/v1/probe", get(&format!("/v1/probe?{known}&more=1")), 400),
            (&plain, "/v1/probe", get(&format!("/v1/probe?{unknown}")), 200),
            (&strict, "/v1/probe", from_client(get(&format!("/v1/probe?{known}"))), 429),
            (&strict, "/v1/probe", from_client(batch(&[])), 429),
            (&strict, "/v1/analysis", from_client(get(&format!("/v1/analysis?{known}"))), 429),
            (&strict, "/v1/mainline", from_client(get(&format!("/v1/mainline?{known}"))), 429),
            (&strict, "/v1/choose", from_client(get(&format!("/v1/choose?{known}&level=casual"))), 429),
            (&strict, "/v1/book", from_client(get(&format!("/v1/book?{known}"))), 429),
            (&plain, "/v1/probe", put, 405),
            (&plain, "/v1/probe", get(&long), 414),
            (&damaged, "/v1/probe", get(&format!("/v1/probe?{spoilt}")), 503),
            (&busy, "/v1/probe", get(&format!("/v1/probe?{known}")), 503),
            (&plain, "/v1/probe", batch(&["0 0 0 0 0 2 1 0 0 0 0 0", "x", "4 4 4 4 4 4 4 4 4 4 4 4"]), 200),
            (&plain, "/v1/probe", batch(&vec!["x"; 1001]), 400),
            (&plain, "/v1/probe", post("{\"positions\": 1}".to_owned()), 400),
            (&slow, "/v1/probe", Request::post("/v1/probe").body(Body::new(Stalled)).unwrap(), 408),
            (&plain, "/v1/probe", post(" ".repeat(200_000)), 413),
            (&busy, "/v1/probe", batch(&[]), 503),
            (&plain, "/v1/analysis", get(&format!("/v1/analysis?{unknown}&time=20&lines=6")), 200),
            (&plain, "/v1/analysis", get(&format!("/v1/analysis?{unknown}&moves=Ff&time=20&format=json")), 200),
            (&plain, "/v1/analysis", get(&format!("/v1/analysis?{known}&format=json")), 200),
            (&plain, "/v1/analysis", get(&format!("/v1/analysis?{unknown}&moves=FF")), 400),
            (&plain, "/v1/analysis", get(&format!("/v1/analysis?{unknown}&time=0")), 400),
            (&plain, "/v1/analysis", get(&long.replace("probe", "analysis")), 414),
            (&damaged, "/v1/analysis", get(&format!("/v1/analysis?{spoilt}")), 503),
            (&busy, "/v1/analysis", get(&format!("/v1/analysis?{unknown}")), 503),
            (&plain, "/v1/mainline", get(&format!("/v1/mainline?{known}")), 200),
            (&plain, "/v1/mainline", get("/v1/mainline?pos=1+0+0+0+0+0+1+0+0+0+0+0"), 200),
            (&plain, "/v1/mainline", get(&format!("/v1/mainline?{known}&moves=1")), 200),
            (&plain, "/v1/mainline", get(&format!("/v1/mainline?{known}&moves=x")), 400),
            (&plain, "/v1/mainline", get(&format!("/v1/mainline?{unknown}")), 200),
            (&plain, "/v1/mainline", get(&long.replace("probe", "mainline")), 414),
            (&damaged, "/v1/mainline", get(&format!("/v1/mainline?{spoilt}")), 503),
            (&busy, "/v1/mainline", get(&format!("/v1/mainline?{known}")), 503),
            (&plain, "/v1/choose", get(&format!("/v1/choose?{known}&level=casual")), 200),
            (&plain, "/v1/choose", get(&format!("/v1/choose?{known}&level=best")), 400),
            (&plain, "/v1/choose", get(&format!("/v1/choose?{unknown}&level=casual")), 200),
            (&plain, "/v1/choose", get(&format!("/v1/choose?{unknown}&moves=Ff&level=beginner&seed=1")), 200),
            (&plain, "/v1/choose", get(&format!("/v1/choose?{unknown}&moves=FF&level=casual")), 400),
            (&busy, "/v1/choose", get(&format!("/v1/choose?{unknown}&level=casual")), 503),
            (&plain, "/v1/choose", get(&long.replace("probe", "choose")), 414),
            (&damaged, "/v1/choose", get(&format!("/v1/choose?{spoilt}&level=casual")), 200),
            (&busy, "/v1/choose", get(&format!("/v1/choose?{known}&level=casual")), 503),
            (&plain, "/v1/book", get(&format!("/v1/book?{unknown}")), 200),
            (&plain, "/v1/book", get(&format!("/v1/book?{unknown}&depth=5")), 400),
            (&plain, "/v1/book", get(&long.replace("probe", "book")), 414),
            (&busy, "/v1/book", get(&format!("/v1/book?{unknown}")), 503),
            (&plain, "/v1/transcript", get(&format!("/v1/transcript?{unknown}&moves=FfBd")), 200),
            (&plain, "/v1/transcript", get(&format!("/v1/transcript?{unknown}&moves=FF")), 400),
            (&plain, "/v1/transcript", get(&long.replace("probe", "transcript")), 414),
            (&plain, "/v1/transcript", game("1. F4 f4 {good} 2. B5 d5 *".into()), 200),
            (&plain, "/v1/transcript", game("[FEN \"0-0-0-0-0-0-1-0-0-0-0-0-0-0-S\"]".into()), 200),
            (&plain, "/v1/transcript", game("F5".into()), 400),
            (&slow, "/v1/transcript", game(Body::new(Stalled)), 408),
            (&plain, "/v1/transcript", game(" ".repeat(200_000).into()), 413),
            (&damaged, "/v1/databases", get("/v1/databases"), 200),
            (&plain, "/v1/databases/{stones}", get("/v1/databases/1"), 200),
            (&plain, "/v1/databases/{stones}", get("/v1/databases/2"), 200),
            (&plain, "/v1/databases/{stones}", get("/v1/databases/6"), 404),
            (&plain, "/v1/databases/{stones}", get("/v1/databases/x"), 404),
            (&plain, "/v1/databases/{stones}", get("/v1/databases/%ff"), 404),
            (&plain, "/v1/openapi.json", get("/v1/openapi.json"), 200),
            (&plain, "/healthz", get("/healthz"), 200),
            (&plain, "/metrics", get("/metrics"), 200),
        ];
        let mut exercised = BTreeSet::new();
        for (site, path, request, status) in asked {
            let what = format!("{} {}", request.method(), request.uri());
            let method = if request.method() == "POST" { "post" } else { "get" };
            let (head, body) = send(site, request).await;
            let text = String::from_utf8(body).unwrap();
            assert_eq!(head.status().as_u16(), status, "{what}: {text}");
            exercised.insert((path.to_owned(), method.to_owned(), status.to_string()));
            let described =
                resolved(&description, &description["paths"][path][method]["responses"][status.to_string()]);
            assert!(described.is_object(), "{what}: {status} is not described");
            let Some(contents) = described["content"].as_object() else {
                assert_eq!(text, "", "{what}");
                continue;
            };
            let sent = head.headers()[header::CONTENT_TYPE].to_str().unwrap();
            let content = contents.iter().find(|(media_type, _)| sent.starts_with(&***media_type));
            let (media_type, content) = content.unwrap_or_else(|| panic!("{what}: {sent} is not described"));
            if media_type == "application/json" {
                let value: Value = serde_json::from_str(&text).unwrap();
                if let Err(problem) = fits(&description, &content["schema"], &value) {
                    panic!("{what}: {problem}\n{value}");
                }
            }
        }
        let mut promised = BTreeSet::new();
        for (path, methods) in description["paths"].as_object().unwrap() {
            for (method, route) in methods.as_object().unwrap() {
                for status in route["responses"].as_object().unwrap().keys() {
                    promised.insert((path.clone(), method.clone(), status.clone()));
                }
            }
        }
        assert_eq!(exercised, promised);
        let (_, counted) = text_of(&plain, get("/metrics")).await;
        assert!(counted.contains("awari_requests_total{route=\"/v1/probe\",status=\"400\"} 5"), "{counted}");
    });
}

/// Resolves a reference of the description.
fn resolved<'a>(description: &'a Value, node: &'a Value) -> &'a Value {
    match node["$ref"].as_str() {
        Some(to) => description.pointer(to.strip_prefix('#').unwrap()).unwrap_or_else(|| panic!("{to} is not there")),
        None => node,
    }
}

/// Whether a value fits a schema, in the subset of JSON Schema that the description uses, and has no other
/// properties. Clients should expect more, so the description does not forbid them.
pub(crate) fn fits(description: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    fits_part(description, schema, value, true)
}

/// As [`fits`]; `is_all` says that no other schema describes further properties of the value.
fn fits_part(description: &Value, schema: &Value, value: &Value, is_all: bool) -> Result<(), String> {
    let schema = resolved(description, schema);
    let known = "type enum oneOf allOf required properties items minimum maximum description";
    for key in schema.as_object().unwrap().keys() {
        assert!(known.split(' ').any(|word| word == key), "the description uses {key}, which this test does not know");
    }
    let fail = |what: String| Err(format!("{what}: {value}"));
    let is_of = |name: &Value| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("no type {other}"),
    };
    match &schema["type"] {
        Value::Null => {}
        Value::Array(names) if names.iter().any(is_of) => {}
        name if name.is_string() && is_of(name) => {}
        name => return fail(format!("expected {name}")),
    }
    if schema["enum"].as_array().is_some_and(|all| !all.contains(value)) {
        return fail(format!("expected one of {}", schema["enum"]));
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fitting = choices.iter().filter(|choice| fits(description, choice, value).is_ok()).count();
        if fitting != 1 {
            return fail(format!("fits {fitting} of {choices:?}"));
        }
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        fits_part(description, part, value, false)?;
    }
    let (least, most) = (schema["minimum"].as_i64(), schema["maximum"].as_i64());
    let is_within = |number| least.is_none_or(|least| least <= number) && most.is_none_or(|most| number <= most);
    if !value.as_i64().is_none_or(is_within) {
        return fail("out of range".to_owned());
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.get(name.as_str().unwrap()).is_none() {
            return fail(format!("{name} is missing"));
        }
    }
    for (name, property) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(property_schema) => fits(description, property_schema, property)?,
            None if is_all && schema["properties"].is_object() => return fail(format!("{name} is not described")),
            None => {}
        }
    }
    for inner in value.as_array().into_iter().flatten() {
        if schema["items"].is_object() {
            fits(description, &schema["items"], inner)?;
        }
    }
    Ok(())
}

/// Starts a server. Returns a function that stops it and waits for its end.
pub(crate) fn listening(limits: ServerLimits) -> (std::net::SocketAddr, impl FnOnce()) {
    let server = Server::bind("127.0.0.1:0", limits).unwrap();
    let (address, stop) = (server.address().unwrap(), server.stop());
    let routes = router(site(Codec::Packed, false, limits));
    let serving = std::thread::spawn(move || server.run(routes));
    let end = move || {
        stop.stop();
        serving.join().unwrap().unwrap();
    };
    (address, end)
}
