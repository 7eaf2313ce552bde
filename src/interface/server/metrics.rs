//! Metrics of the server, in the text format of Prometheus (version 0.0.4).

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Names of the routes in `/metrics`; unknown routes count as the last.
pub(super) const ROUTES: [&str; 20] = [
    "/v1/probe",
    "/v1/analysis",
    "/v1/mainline",
    "/v1/choose",
    "/v1/transcript",
    "/v1/databases",
    "/v1/databases/{stones}",
    "/v1/openapi.json",
    "/healthz",
    "/metrics",
    "/",
    "/app.js",
    "/analysis.js",
    "/board.js",
    "/format.js",
    "/game.js",
    "/requests.js",
    "/state.js",
    "/style.css",
    "other",
];

/// The statuses that the server sends; others count as 0.
const STATUSES: [u16; 15] = [200, 204, 304, 400, 404, 405, 408, 413, 414, 429, 431, 500, 501, 503, 0];

/// Upper bounds of the histogram buckets, in microseconds.
const CLASSES: [u64; 12] = [25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000];

/// Lock-free counters.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    requests: [[AtomicU64; STATUSES.len()]; ROUTES.len()],
    /// The last bucket has no upper bound.
    classes: [AtomicU64; CLASSES.len() + 1],
    microseconds: AtomicU64,
}

impl Metrics {
    /// Counts a request.
    pub(super) fn count(&self, route: Option<&str>, status: u16, took: Duration) {
        let route = ROUTES.iter().position(|known| Some(*known) == route).unwrap_or(ROUTES.len() - 1);
        let status = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len() - 1);
        let microseconds = took.as_micros() as u64;
        let class = CLASSES.iter().position(|&end| microseconds <= end).unwrap_or(CLASSES.len());
        self.requests[route][status].fetch_add(1, Ordering::Relaxed);
        self.classes[class].fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add(microseconds, Ordering::Relaxed);
    }

    /// Returns the answer of `/metrics`.
    pub(super) fn text(&self, blocks_decoded: u64, block_cache_bytes: u64) -> String {
        let mut text = String::from("# HELP awari_requests_total Requests by route and status.\n");
        text.push_str("# TYPE awari_requests_total counter\n");
        for (route, counts) in ROUTES.iter().zip(&self.requests) {
            for (status, count) in STATUSES.iter().zip(counts) {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    let _ = writeln!(text, "awari_requests_total{{route=\"{route}\",status=\"{status}\"}} {count}");
                }
            }
        }
        text.push_str("# HELP awari_request_seconds Seconds from the head of a request to its answer.\n");
        text.push_str("# TYPE awari_request_seconds histogram\n");
        let mut total = 0;
        for (end, count) in CLASSES.iter().zip(&self.classes) {
            total += count.load(Ordering::Relaxed);
            let end = *end as f64 / 1e6;
            let _ = writeln!(text, "awari_request_seconds_bucket{{le=\"{end}\"}} {total}");
        }
        total += self.classes[CLASSES.len()].load(Ordering::Relaxed);
        let seconds = self.microseconds.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(text, "awari_request_seconds_bucket{{le=\"+Inf\"}} {total}");
        let _ = writeln!(text, "awari_request_seconds_sum {seconds}\nawari_request_seconds_count {total}");
        text.push_str("# HELP awari_blocks_decoded_total Blocks of compressed databases that were decoded.\n");
        let _ =
            writeln!(text, "# TYPE awari_blocks_decoded_total counter\nawari_blocks_decoded_total {blocks_decoded}");
        text.push_str("# HELP awari_block_cache_bytes Bytes of decoded blocks in the cache.\n");
        let _ = writeln!(text, "# TYPE awari_block_cache_bytes gauge\nawari_block_cache_bytes {block_cache_bytes}");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_buckets_are_cumulative() {
        let metrics = Metrics::default();
        metrics.count(Some("/v1/probe"), 200, Duration::from_micros(25));
        metrics.count(Some("/v1/probe"), 200, Duration::from_micros(26));
        metrics.count(None, 404, Duration::from_secs(2));
        let text = metrics.text(7, 8);
        for line in [
            "awari_requests_total{route=\"/v1/probe\",status=\"200\"} 2",
            "awari_requests_total{route=\"other\",status=\"404\"} 1",
            "awari_request_seconds_bucket{le=\"0.000025\"} 1",
            "awari_request_seconds_bucket{le=\"1\"} 2",
            "awari_request_seconds_bucket{le=\"+Inf\"} 3",
            "awari_request_seconds_sum 2.000051",
            "awari_request_seconds_count 3",
            "awari_blocks_decoded_total 7",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
