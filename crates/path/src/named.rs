//! Paths by name.

/// A path that can be selected by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedPath {
    /// The name, written after `@` on the command line.
    pub name: &'static str,
    /// A short description.
    pub about: &'static str,
    /// The text of the path, see [`PathSpec`](crate::PathSpec).
    pub spec: &'static str,
    /// The source of its numbers.
    pub source: &'static str,
}

const PANTHEON: &str =
    "Pantheon (USENIX ATC 2018), an emulator calibrated to this path; its \"mm-delay\" and queue";
const WEB_PAGE_TEST: &str = "WebPageTest's connectivity.ini: rates and round trip; the buffer is 100 ms of the rate, an assumption";

/// The library of paths. `down` leads towards the user: `up` carries the user's data.
pub const NAMED_PATHS: [NamedPath; 13] = [
    NamedPath {
        name: "fibre",
        about: "home fibre, 20/5 Mbit/s",
        spec: "up.rate=5Mbit/s down.rate=20Mbit/s rtt=4ms up.buffer=62.5kB down.buffer=250kB",
        source: WEB_PAGE_TEST,
    },
    NamedPath {
        name: "cable",
        about: "home cable, 5/1 Mbit/s",
        spec: "up.rate=1Mbit/s down.rate=5Mbit/s rtt=28ms up.buffer=12.5kB down.buffer=62.5kB",
        source: WEB_PAGE_TEST,
    },
    NamedPath {
        name: "cable-pie",
        about: "home cable whose modem has PIE, 100/10 Mbit/s",
        spec: "up.rate=10Mbit/s down.rate=100Mbit/s rtt=28ms buffer=256kB up.queue=pie",
        source: "RFC 8034 (DOCSIS 3.1 has PIE upstream); the round trip is WebPageTest's, rates and buffer are assumptions",
    },
    NamedPath {
        name: "dsl",
        about: "home DSL, 1.5/0.384 Mbit/s",
        spec: "up.rate=384kbit/s down.rate=1.5Mbit/s rtt=50ms up.buffer=4.8kB down.buffer=18.75kB",
        source: WEB_PAGE_TEST,
    },
    NamedPath {
        name: "3g",
        about: "mobile, 1.6/0.768 Mbit/s",
        spec: "up.rate=768kbit/s down.rate=1.6Mbit/s rtt=150ms up.buffer=9.6kB down.buffer=20kB",
        source: WEB_PAGE_TEST,
    },
    NamedPath {
        name: "4g",
        about: "mobile, 9/9 Mbit/s, far from the server",
        spec: "rate=9Mbit/s rtt=170ms buffer=112.5kB",
        source: WEB_PAGE_TEST,
    },
    NamedPath {
        name: "lte",
        about: "mobile, 12/12 Mbit/s",
        spec: "rate=12Mbit/s rtt=70ms buffer=150kB",
        source: WEB_PAGE_TEST,
    },
    NamedPath {
        name: "cellular-mexico",
        about: "cellular in Mexico to a data centre in California",
        spec: "rate=2.64Mbit/s rtt=176ms buffer=130pkt",
        source: PANTHEON,
    },
    NamedPath {
        name: "cellular-colombia",
        about: "a data centre in Brazil to cellular in Colombia",
        spec: "rate=3.04Mbit/s rtt=260ms buffer=426pkt",
        source: PANTHEON,
    },
    NamedPath {
        name: "leo",
        about: "satellites in low orbit, 105/12 Mbit/s",
        spec: "up.rate=12Mbit/s down.rate=105Mbit/s rtt=40ms buffer=500kB",
        source: "Ookla's medians for Starlink in the US, fourth quarter of 2021; the buffer is an assumption",
    },
    NamedPath {
        name: "geo",
        about: "a geostationary satellite, 18.75 Mbit/s",
        spec: "up.rate=3Mbit/s down.rate=18.75Mbit/s rtt=629ms buffer=1.5MB",
        source: "Ookla's medians for Viasat in the US, third quarter of 2021; upstream and buffer are assumptions",
    },
    NamedPath {
        name: "transatlantic",
        about: "1 Gbit/s from New York to London",
        spec: "rate=1Gbit/s rtt=70ms buffer=8.75MB",
        source: "5,570 km of great circle at 2/3 of the speed of light take 56 ms there and back, and cables are a quarter longer; the buffer is one BDP, an assumption",
    },
    NamedPath {
        name: "datacentre",
        about: "1 Gbit/s within a data centre, a shallow buffer",
        spec: "rate=1Gbit/s rtt=250us buffer=128kB",
        source: "assumptions in the range of DCTCP's paper (SIGCOMM 2010): 1 Gbit/s hosts, round trips of 100 to 250 us, shared buffers of 4 MB for 48 ports",
    },
];

/// The path of this name, given without the `@`.
pub fn named_path(name: &str) -> Option<&'static NamedPath> {
    NAMED_PATHS.iter().find(|path| path.name == name)
}
