use sweetspot_lab::blog::blog;
use sweetspot_lab::{LabError, isolated};
use sweetspot_units::Duration;

pub fn no_more_than_a_window_per_round_trip() {
    let blog = isolated(|| blog(Duration::from_millis(500), &mut |_| {})).unwrap();
    assert_eq!(blog.rows.len(), 5);
    for row in &blog.rows {
        // socket(7): the kernel doubles what a program asks for.
        assert_eq!(row.buffer_bytes, 2 * row.asked_bytes, "{row:?}");
        // The path's own: 5 ms each way, and no packet is lost where windows fit the buffer. (A
        // machine that stalls may still make the sender's timers send again, RFC 5682.)
        assert!(row.rtt_min_s >= 0.010, "{row:?}");
        for way in ["up", "down"] {
            assert_eq!(row.certificate.emulator[way]["dropped_by_buffer"], 0, "{row:?}");
        }
        // Whatever the machine is doing: SOBAS eq. (3), and what headers leave of the link.
        let most = row.window_advertised_bytes as f64 * 8.0 / row.rtt_min_s;
        assert!(row.measured_bps > 0.0 && row.measured_bps <= most.min(94.15e6), "{row:?}");
    }
    // A larger buffer is a larger window.
    assert!(blog.rows.is_sorted_by(|a, b| a.window_advertised_bytes < b.window_advertised_bytes));
}

pub fn an_error_inside_comes_back() {
    let failed = || Err::<(), _>(LabError::Inside("lab: as it should be".into()));
    assert_eq!(isolated(failed).unwrap_err().to_string(), "lab: as it should be");
}
