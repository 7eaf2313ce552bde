use engines::*;
use game::*;
use std::time::Instant;
fn main() {
    let n: u32 = std::env::args().nth(1).unwrap().parse().unwrap();
    let threads: usize = std::env::args().nth(2).map_or(1, |t| t.parse().unwrap());
    let set = if std::env::args().nth(3).is_some() { PositionSet::Reachable } else { PositionSet::All };
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| run(n, set));
}
fn run(n: u32, set: PositionSet) {
    let published = std::fs::read_to_string("/work/shared/published/lincke-2002-0-to-16.csv").unwrap();
    let t = Tables::new(Rules::AWARI, set, n);
    let kernel = if std::env::var_os("PORTABLE").is_some() { Kernel::Portable } else { Kernel::detect() };
    let mut dbs: Vec<Bytes> = vec![];
    let (mut tc, mut ts, mut total) = (0.0, 0.0, 0);
    for k in 0..=n {
        let index = Index::new(k, set);
        let len = index.positions() as usize;
        let t0 = Instant::now();
        let mut caps = Bytes::zeroed(len).unwrap();
        caps.fill(capture::none(k));
        let smaller: Vec<Option<capture::Smaller>> = dbs
            .iter()
            .enumerate()
            .map(|(j, db)| {
                Some({
                    let ix = Index::new(j as u32, set);
                    ix.slabs()
                        .iter()
                        .map(|s| {
                            capture::SlabScores::Raw(unsafe {
                                std::slice::from_raw_parts(
                                    db.as_ptr().add(s.offset as usize).cast(),
                                    s.positions() as usize,
                                )
                            })
                        })
                        .collect()
                })
            })
            .collect();
        capture::capture(&t, &index, &smaller, &mut caps, &()).unwrap();
        let t1 = Instant::now();
        let mut v = Bytes::zeroed(len).unwrap();
        let r = sweep::sweep(&t, &index, &caps, &mut v, kernel, &(), &mut |_| {}).unwrap();
        let t2 = Instant::now();
        let (a, b) = ((t1 - t0).as_secs_f64(), (t2 - t1).as_secs_f64());
        tc += a;
        ts += b;
        total += len;
        println!(
            "{k} {len} capture {:.2} ns sweep {:.2} ns passes {} recomputed {:.2} changed {:.2}",
            a * 1e9 / len as f64,
            b * 1e9 / len as f64,
            r.passes,
            r.recomputed as f64 / len as f64,
            r.changed as f64 / len as f64
        );
        if k <= 16 && set == PositionSet::All {
            let mut h = std::collections::BTreeMap::new();
            for &x in v.iter() {
                *h.entry(x).or_insert(0u64) += 1;
            }
            let got: Vec<String> = h.iter().map(|(s, c)| format!("{k},{s},{c}")).collect();
            let want: Vec<&str> = published.lines().filter(|l| l.starts_with(&format!("{k},"))).collect();
            if got != want {
                println!("DIFFERS {k}\n{got:?}\n{want:?}");
                std::process::exit(1);
            }
        }
        dbs.push(v);
    }
    println!("total {total} capture {tc:.2}s sweep {ts:.2}s: {:.2} M/s", total as f64 / (tc + ts) / 1e6);
}
