//! `awari serve`: address, answers from the databases of a run, and stop by a signal.

use tests::directory::{TestDirectory, ended_child, signal};
use tests::serve_process::ServeProcess;

#[test]
fn a_server_answers_until_stopped() {
    let place = TestDirectory::built(5);
    for name in ["INT", "TERM"] {
        let server = ServeProcess::start(&place);
        let served = server.json("/v1/probe?pos=0+0+0+0+1+2+1+0+0+0+0+1");
        let probed = place.awari("probe --dir run --json '0 0 0 0 1 2 1 0 0 0 0 1'").is(0).json();
        for field in ["position", "stones", "score", "source"] {
            assert_eq!(served[field], probed[field], "{field}");
        }
        // The statistics of the run cover every position.
        let database = server.json("/v1/databases/5");
        let counts = database["histogram"].as_array().unwrap().iter();
        let total: u64 = counts.map(|count| count["positions"].as_u64().unwrap()).sum();
        assert_eq!((Some(total), total), (database["positions"].as_u64(), 4368));
        assert!(server.get("/").contains("<title>Awari oracle</title>"));

        let child = server.into_child();
        signal(&child, name);
        ended_child(child).is(0).says(&["stop requested", "Ctrl-C again"]);
    }
}

/// What the image of the guide must hold beside the program. With MPI, the program needs the libraries of that too.
#[test]
#[cfg(not(feature = "mpi"))]
fn the_program_needs_few_libraries() {
    let out = std::process::Command::new("ldd").arg(tests::awari()).output().unwrap();
    let out = String::from_utf8(out.stdout).unwrap();
    let names: Vec<&str> = out.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    let of_glibc = ["linux-vdso.so.1", "libm.so.6", "libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
    assert!(names.contains(&"libc.so.6"), "{out}");
    assert!(names.iter().all(|name| of_glibc.contains(name) || *name == "libgcc_s.so.1"), "{out}");
}

#[test]
fn a_server_listens_at_the_given_address() {
    let place = TestDirectory::built(1);
    for (listen, shown) in
        [("localhost:0", ""), (":0", "127.0.0.1:"), ("0", "127.0.0.1:"), ("127.0.0.1:0", "127.0.0.1:")]
    {
        let server = ServeProcess::start_at(&place, listen);
        assert!(server.address.starts_with(shown), "{listen}: {}", server.address);
        assert_eq!(server.json("/v1/probe?pos=0+0+0+0+0+1+0+0+0+0+0+0")["stones"], 1, "{listen}");
    }
    place.awari("serve --dir run --listen localhost:http").is(2).says(&["localhost:8080"]);
    place.awari("serve --dir run --listen no.such.host.invalid:0").is(12).says(&["no.such.host.invalid"]);
}

#[test]
fn obstacles_to_serving_are_named() {
    let place = TestDirectory::built(1);
    place.awari("serve --dir nowhere").is(3);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    place.awari(&format!("serve --dir run --listen {address}")).is(12).says(&[&address, "--listen"]);
}
