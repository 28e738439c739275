//! Checks the files for Prometheus and Grafana with Prometheus's promtool.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use sweetspot_linux::clock;
use sweetspot_testing::promtool;
use sweetspot_units::Duration;

const PACKAGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");

/// A loopback address without a listener.
fn address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The metrics at `address`, fetched repeatedly like Prometheus does, until there are some.
fn scraped(address: SocketAddr) -> String {
    let mut last = String::new();
    for _ in 0..600 {
        match answer(address) {
            Ok(answer) => {
                let (head, metrics) = answer.split_once("\r\n\r\n").expect("a head and a body");
                assert!(head.starts_with("HTTP/1.1 200"), "{head}");
                if !metrics.is_empty() {
                    return metrics.to_owned();
                }
            }
            Err(error) => last = error.to_string(),
        }
        clock::sleep_until(clock::now() + Duration::from_millis(100));
    }
    panic!("nothing is handed out at {address}: {last}");
}

/// The response of `address` to one request. Until the program listens, another process that briefly has the port may
/// respond.
fn answer(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The program; it is killed when this is dropped.
struct Program(Child);

impl Program {
    fn start(arguments: &[&str]) -> Program {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
        // Its error messages show why there are no metrics.
        command.args(arguments).stdout(Stdio::null());
        Program(command.spawn().unwrap())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn serve_exports_valid_prometheus_metrics() {
    let directory = tempfile::tempdir().unwrap();
    let metrics = address();
    let _serve = Program::start(&[
        "serve",
        "--dir",
        directory.path().to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
        "--metrics",
        &metrics.to_string(),
    ]);
    promtool::accepts(&["check", "metrics"], &scraped(metrics));
}

#[test]
fn tune_exports_valid_prometheus_metrics() {
    let metrics = address();
    let _tune =
        Program::start(&["tune", "run", "--metrics", &metrics.to_string(), "--", "sleep", "60"]);
    let handed_out = scraped(metrics);
    // increase() needs an initial zero.
    assert!(handed_out.contains("sweetspot_events_total{event=\"refused\"} 0"), "{handed_out}");
    promtool::accepts(&["check", "metrics"], &handed_out);
}

#[test]
fn each_alert_fires_only_when_it_should() {
    promtool::accepts(&["test", "rules", &format!("{PACKAGING}/alerts-test.yml")], "");
    // Every alert has a test.
    let read = |name| std::fs::read_to_string(format!("{PACKAGING}/{name}")).unwrap();
    let (rules, tested) = (read("alerts.yml"), read("alerts-test.yml"));
    let names: Vec<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(!names.is_empty());
    for name in names {
        assert!(tested.contains(&format!("alertname: {name}")), "{name} has no test");
    }
}

/// Wraps each expression in a recording rule, because promtool parses rules.
#[test]
fn each_dashboard_expression_is_valid_promql() {
    let text = std::fs::read_to_string(format!("{PACKAGING}/grafana-dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let rules: Vec<Value> = targets
        .enumerate()
        .map(|(number, target)| {
            let expression = target["expr"].as_str().unwrap();
            let expression = expression.replace("$__rate_interval", "1m");
            serde_json::json!({ "record": format!("panel:{number}"), "expr": expression })
        })
        .collect();
    assert!(!rules.is_empty());
    let file = tempfile::NamedTempFile::new().unwrap();
    // JSON is valid YAML.
    let all = serde_json::json!({ "groups": [{ "name": "dashboard", "rules": rules }] });
    std::fs::write(file.path(), all.to_string()).unwrap();
    promtool::accepts(&["check", "rules", file.path().to_str().unwrap()], "");
}
