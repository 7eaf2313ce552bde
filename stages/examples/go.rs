use pipeline::*; use std::time::Instant;
struct Show;
impl Observer for Show { fn notice(&self, e: &Event) { if let Event::StageDone{stage, measured, bytes} = e { eprintln!("{stage} wall {:.3} cpu {:.3} rate {:.1}M/s peak {:?} bytes {bytes} {:?}", measured.wall_seconds, measured.cpu_seconds, measured.report.positions as f64/measured.cpu_seconds/1e6, measured.memory_peak_bytes.map(|b| b>>20), measured.report.counters) } else if !matches!(e, Event::Progress{..}|Event::StageStarted{..}) { eprintln!("{e:?}") } } }
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&a[1]).unwrap();
    let over: Vec<(String,String)> = a[3..].iter().map(|s| { let (k,v) = s.split_once('=').unwrap(); (k.into(), v.into()) }).collect();
    let m = Manifest::parse(&text, &a[1], &stages::schema(), &over).unwrap();
    let s = stages::Settings::new(&m);
    let options = RunOptions { threads: s.threads, keep: s.keep, memory: Budget::new(s.memory_bytes), snapshot_interval: s.snapshot, manifest: m.to_toml(), ..Default::default() };
    let w = stages::Awari::new(s);
    let d = disk::RealDisk;
    let t = Instant::now();
    let o = Orchestrator::new(&d, std::path::Path::new(&a[2]), &w, options).observer(&Show);
    match o.run() { Ok(s) => { let p: u64 = s.ran.iter().filter(|r| r.stage.kind()=="sweep").map(|r| r.measured.report.positions).sum(); let c = disk::clock::cpu_seconds(); println!("{:?} {} stages {:.2}s cpu {:.2} -> {:.2} M/s cpu, {:.2} wall", s.how, s.ran.len(), t.elapsed().as_secs_f64(), c, p as f64/c/1e6, p as f64/1e6/t.elapsed().as_secs_f64()); for k in ["capture","sweep","verify","stats"] { let c: f64 = s.ran.iter().filter(|r| r.stage.kind()==k).map(|r| r.measured.cpu_seconds).sum(); println!("{k} {c:.2}"); } } Err(e) => println!("ERROR {e}") }
}
