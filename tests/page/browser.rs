//! Chromium, driven through WebDriver as a person drives it: with clicks and keys.

use fantoccini::actions::{InputSource, KeyAction, KeyActions, MOUSE_BUTTON_RIGHT, MouseActions, PointerAction};
use fantoccini::key::Key;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use game::Rules;
use game::notation::MoveText;
use game::play::Game;
use http::Method;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tests::Random;
use tests::directory::TestDirectory;
use tests::needs::Need;
use tests::serve_process::ServeProcess;
use url::{ParseError, Url};

/// Time after which a page counts as stuck.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const STONES_MAX: u32 = 9;

/// Nine stones: one move wins, one draws, two lose.
pub(crate) const NINE: &str = "2-0-1-1-2-0-1-0-0-0-1-1-19-20-S";

/// Runs a scenario in a new browser, and checks the logs of the browser.
pub(crate) fn browse(scenario: impl AsyncFnOnce(&Browser<'_>)) {
    browse_prepared(|_| {}, scenario);
}

/// As [`browse`], after a change of the directory that is served.
pub(crate) fn browse_prepared(prepare: impl FnOnce(&TestDirectory), scenario: impl AsyncFnOnce(&Browser<'_>)) {
    browse_made(
        || {
            let place = TestDirectory::built(STONES_MAX);
            prepare(&place);
            place
        },
        scenario,
    );
}

/// As [`browse`], with databases of a few stones by other rules.
pub(crate) fn browse_by(rules: &Rules, stones_max: u32, scenario: impl AsyncFnOnce(&Browser<'_>)) {
    browse_made(
        || {
            let place = TestDirectory::new(stones_max);
            place.awari(&format!("run m.toml --set game.rules={}", rules.name)).is(0);
            place
        },
        scenario,
    );
}

fn browse_made(make: impl FnOnce() -> TestDirectory, scenario: impl AsyncFnOnce(&Browser<'_>)) {
    if !Need::Chromium.is_met() {
        return;
    }
    let driver = Driver::start();
    let place = make();
    let served = ServeProcess::start(&place);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let browser = Browser::open(&driver, &served, &place.path("browser")).await;
        scenario(&browser).await;
        browser.is_blameless().await;
    });
}

/// `chromedriver`, at a port of its own.
struct Driver {
    child: Child,
    port: u16,
}

/// A window of a browser that shows the page of a server, closed when dropped.
pub(crate) struct Browser<'a> {
    client: Client,
    driver: &'a Driver,
    session: String,
    pub(crate) served: &'a ServeProcess,
}

/// A command that WebDriver leaves to the browser.
#[derive(Debug)]
struct Extension {
    path: &'static str,
    body: Value,
}

/// Pauses between two looks at the page, each twice as long as the last up to 40 ms: every look keeps the browser busy.
struct Polls {
    end: Instant,
    next: Duration,
}

impl Polls {
    fn new() -> Polls {
        Polls { end: Instant::now() + PATIENCE, next: Duration::from_millis(5) }
    }

    /// Waits. Returns whether there is patience left.
    async fn pause(&mut self) -> bool {
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(Duration::from_millis(40));
        Instant::now() < self.end
    }
}

impl Driver {
    fn start() -> Driver {
        let mut child = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let port = lines.map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse().ok()
        });
        let port = port.unwrap_or_else(|| panic!("chromedriver names no port"));
        Driver { child, port }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        tests::directory::signal(&self.child, "TERM");
        let _ = self.child.wait();
    }
}

impl Drop for Browser<'_> {
    fn drop(&mut self) {
        // Not through the client, which needs a running executor: a test may be failing, and `chromedriver` leaves the
        // browser of an open session behind. Errors are ignored.
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.driver.port)) else { return };
        let head = format!("DELETE /session/{} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", self.session);
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let _ = stream.write_all(head.as_bytes());
        // It answers when the browser has ended.
        let _ = stream.read(&mut [0; 1024]);
    }
}

impl WebDriverCompatibleCommand for Extension {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}

impl<'a> Browser<'a> {
    /// A new browser with an empty profile, which connects to no address but that of the server.
    async fn open(driver: &'a Driver, served: &'a ServeProcess, folder: &Path) -> Browser<'a> {
        let folder = format!("--user-data-dir={}", folder.display());
        let arguments = [
            "--headless",
            // Root may not have the sandbox, and the page is our own.
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            // Most tests do not wait for moves to be shown.
            "--force-prefers-reduced-motion",
            "--window-size=900,1100",
            &folder,
        ];
        let capabilities = json!({
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        });
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities.as_object().unwrap().clone())
            .connect(&format!("http://127.0.0.1:{}", driver.port))
            .await
            .unwrap();
        let session = client.session_id().await.unwrap().unwrap();
        Browser { client, driver, session, served }
    }

    /// Goes to an address of the server, and waits until the page is not busy.
    pub(crate) async fn visit(&self, path: &str) {
        self.visit_without_scripts(path).await;
        self.settled().await;
    }

    pub(crate) async fn visit_without_scripts(&self, path: &str) {
        self.client.goto(&format!("http://{}{path}", self.served.address)).await.unwrap();
    }

    pub(crate) async fn reload(&self) {
        self.client.refresh().await.unwrap();
        self.settled().await;
    }

    pub(crate) async fn back(&self) {
        self.client.back().await.unwrap();
        self.settled().await;
    }

    /// The address, from the server on.
    pub(crate) async fn address(&self) -> String {
        let url = self.client.current_url().await.unwrap();
        format!("{}{}", url.path(), url.query().map(|query| format!("?{query}")).unwrap_or_default())
    }

    /// The value of a field of the address.
    pub(crate) async fn field(&self, name: &str) -> Option<String> {
        let url = self.client.current_url().await.unwrap();
        url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }

    pub(crate) async fn click(&self, css: &str) {
        self.client
            .find(Locator::Css(css))
            .await
            .unwrap_or_else(|error| panic!("{css}: {error}"))
            .click()
            .await
            .unwrap();
        self.settled().await;
    }

    /// Follows a link of a page on which no script runs.
    pub(crate) async fn follow(&self, text: &str) {
        let before = self.address().await;
        self.client.find(Locator::LinkText(text)).await.unwrap().click().await.unwrap();
        self.arrived(&before).await;
    }

    /// Presses Enter in a form of a page on which no script runs.
    pub(crate) async fn submit(&self) {
        let before = self.address().await;
        self.type_keys(&char::from(Key::Enter).to_string()).await;
        self.arrived(&before).await;
    }

    /// Waits until another page has come.
    async fn arrived(&self, before: &str) {
        let mut polls = Polls::new();
        while self.address().await == before {
            assert!(polls.pause().await, "nothing comes after {before}");
        }
        self.until("document.readyState === 'complete'").await;
    }

    /// Clicks the button with this text.
    pub(crate) async fn push(&self, label: &str) {
        let path = format!("//button[normalize-space()='{label}']");
        self.client.find(Locator::XPath(&path)).await.unwrap().click().await.unwrap();
        self.settled().await;
    }

    pub(crate) async fn click_right(&self, css: &str) {
        let element = self.client.find(Locator::Css(css)).await.unwrap();
        let click = MouseActions::new("mouse".to_owned())
            .then(PointerAction::MoveToElement { element, duration: None, x: 0.0, y: 0.0 })
            .then(PointerAction::Down { button: MOUSE_BUTTON_RIGHT })
            .then(PointerAction::Up { button: MOUSE_BUTTON_RIGHT });
        self.client.perform_actions(click).await.unwrap();
        self.settled().await;
    }

    pub(crate) async fn choose(&self, css: &str, value: &str) {
        self.client.find(Locator::Css(css)).await.unwrap().select_by_value(value).await.unwrap();
        self.settled().await;
    }

    /// Begins a game by the dialog: the computer plays a side at a level, from the opening or from `here`.
    pub(crate) async fn begin_game(&self, computer: &str, level: &str, from: &str) {
        self.click("#open-new-game").await;
        for (name, value) in [("computer", computer), ("level", level), ("from", from)] {
            self.click(&format!("#new-game [name={name}][value='{value}']")).await;
        }
        self.click("#begin").await;
    }

    /// Puts a text in the place of what a field holds.
    pub(crate) async fn fill(&self, css: &str, text: &str) {
        let field = self.client.find(Locator::Css(css)).await.unwrap();
        field.clear().await.unwrap();
        field.send_keys(text).await.unwrap();
    }

    /// Presses keys one after the other, wherever the focus is.
    pub(crate) async fn press(&self, keys: &str) {
        self.type_keys(keys).await;
        self.settled().await;
    }

    async fn type_keys(&self, keys: &str) {
        let down_and_up = |keys: KeyActions, value| keys.then(KeyAction::Down { value }).then(KeyAction::Up { value });
        let keys = keys.chars().fold(KeyActions::new("keyboard".to_owned()), down_and_up);
        self.client.perform_actions(keys).await.unwrap();
    }

    /// Presses a key that has no letter.
    pub(crate) async fn press_key(&self, key: Key) {
        self.press(&char::from(key).to_string()).await;
    }

    /// Returns the result of a script.
    pub(crate) async fn script(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Returns the value that a script passes to `done`.
    pub(crate) async fn script_later(&self, script: &str) -> Value {
        let script = format!("const done = arguments[arguments.length - 1]; {script}");
        self.client.execute_async(&script, Vec::new()).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// The text of the first element, as it is shown.
    pub(crate) async fn text(&self, css: &str) -> String {
        self.client.find(Locator::Css(css)).await.unwrap().text().await.unwrap()
    }

    /// The texts of all elements.
    pub(crate) async fn texts(&self, css: &str) -> Vec<String> {
        let script = format!("return [...document.querySelectorAll({})].map((one) => one.textContent)", json!(css));
        serde_json::from_value(self.script(&script).await).unwrap()
    }

    /// Pit by pit from A round to f, what stands in it and what it is said to be worth.
    pub(crate) async fn pits(&self) -> Vec<(String, String)> {
        let script = "return [...document.querySelectorAll('.pit[data-place]')]
            .sort((a, b) => a.dataset.place - b.dataset.place)
            .map((pit) => ['.stones', '.value'].map((part) => pit.querySelector(part).textContent))";
        serde_json::from_value(self.script(script).await).unwrap()
    }

    /// The pits that may be played, from A (0) round to f.
    pub(crate) async fn playable(&self) -> Vec<u64> {
        let script = "return [...document.querySelectorAll('.pit[data-place]:not([aria-disabled])')]
            .map((pit) => Number(pit.dataset.place)).sort((a, b) => a - b)";
        serde_json::from_value(self.script(script).await).unwrap()
    }

    /// The address, what describes the shown position, and the choices of the user. (The graph and the marks
    /// of errors depend on the positions that were shown before.)
    pub(crate) async fn snapshot(&self) -> Value {
        let script = "const byId = (id) => document.getElementById(id);
            return [location.search, ...['board', 'banner', 'evaluation', 'line', 'moves', 'histogram'].map((id) => byId(id).innerText),
                byId('hide').checked, byId('edit').checked, document.querySelector('[aria-current]')?.dataset.step ?? 'none']";
        self.script(script).await
    }

    /// Waits until a script returns true.
    pub(crate) async fn until(&self, condition: &str) {
        let mut polls = Polls::new();
        while self.script(&format!("return Boolean({condition})")).await != true {
            if !polls.pause().await {
                panic!("{condition} never holds at {}: {:?}", self.address().await, self.log("browser").await);
            }
        }
    }

    /// Waits until the page is not busy.
    pub(crate) async fn settled(&self) {
        self.until("document.querySelector(\"#main[aria-busy=false]\")").await;
    }

    /// A command of the Chrome DevTools Protocol.
    pub(crate) async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({ "cmd": command, "params": parameters });
        self.client.issue_cmd(Extension { path: "goog/cdp/execute", body }).await.unwrap()
    }

    async fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.client.issue_cmd(Extension { path: "se/log", body: json!({ "type": kind }) }).await.unwrap();
        entries.as_array().unwrap().clone()
    }

    /// Plays the game on the page to its end, with random and best moves of South, by clicks and keys. Then
    /// repeats its moves from the start, and asserts that all are legal and that the page announces the right
    /// result. `what` describes the game in a failure.
    pub(crate) async fn played_game(&self, mut game: Game, random: &mut Random, what: &str) -> Game {
        while !self.text("#banner").await.starts_with("The game is over") {
            let pit = *random.pick(&self.playable().await);
            assert!(pit < 6, "{what}: it is South's turn, not that of {pit}");
            match random.below(4) {
                0 => self.click(&format!("[data-place='{pit}']")).await,
                1 | 2 => self.push("Best").await,
                _ => self.press(&(pit + 1).to_string()).await,
            }
            // A repeated position ends a game.
            assert!(self.field("moves").await.unwrap().len() < 1000);
        }
        for letter in self.field("moves").await.unwrap().chars() {
            let played: MoveText = letter.to_string().parse().unwrap();
            assert!(played.side == game.now().seats.side && game.outcome().is_none());
            game.play(played.pit).unwrap();
        }
        let expected = format!("{}.", game.result_text().unwrap());
        let banner = self.text("#banner").await;
        assert!(banner.ends_with(&expected), "{what}: {banner}");
        // The last stones are in the stores.
        let shares = game.final_shares().unwrap().map(|share| share.to_string());
        assert_eq!(
            self.texts(".store.south .stones, .store.north .stones").await,
            [&*shares[1], &*shares[0]],
            "{what}"
        );
        assert!(self.pits().await.iter().all(|(stones, _)| stones == "0"), "{what}");
        game
    }

    /// Asserts that the browser logged no error or warning, and sent requests only to the server. Deliberate
    /// mistakes are logged as refused with 400. Chromium also logs errors of its own pages, such as that of a
    /// new tab when scripts are switched off.
    async fn is_blameless(&self) {
        for entry in self.log("browser").await {
            let message = entry["message"].as_str().unwrap();
            let is_of_chromium = message.starts_with("chrome://");
            assert!(is_of_chromium || message.contains("status of 400 (Bad Request)"), "{entry}");
        }
        let mut requests = 0u32;
        for entry in self.log("performance").await {
            let event: Value = serde_json::from_str(entry["message"].as_str().unwrap()).unwrap();
            if event["message"]["method"] == "Network.requestWillBeSent" {
                let url = event["message"]["params"]["request"]["url"].as_str().unwrap();
                let is_ours = url.starts_with(&format!("http://{}/", self.served.address));
                // Before it is sent anywhere, a browser shows a page of its own.
                assert!(is_ours || url.starts_with("data:") || url.starts_with("chrome:"), "{url} was asked for");
                requests += u32::from(is_ours);
            }
        }
        assert!(requests > 0, "the log of requests is empty");
    }
}
