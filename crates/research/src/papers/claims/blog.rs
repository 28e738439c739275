//! Gordon: claims in words.

use super::{Claim, yes};

pub(super) const CLAIMS: &[Claim] = &[
    yes(
        ("BDP", "a receiver must hold one bandwidth-delay product"),
        ("window / RTT below it, the link above it", ""),
        &["blog-table2"],
    ),
    yes(
        ("Linux", "three quarters of a receive buffer are window"),
        ("four thirds of the BDP as buffer", "until 3.3"),
        &["crates/theory/tests/published/blog.rs::table_1_has_four_thirds_of_the_bdp"],
    ),
    yes(
        ("Linux", "half of it is window in later kernels"),
        ("the same, 3.4 to 6.5", "later kernels measure the share"),
        &["crates/theory/tests/published/blog.rs::since_3_4_half_of_the_buffer_is_window"],
    ),
    yes(
        ("Linux", "the kernel doubles what SO_RCVBUF asks for"),
        ("75 to 187.5 kB advertised for 50 to 125 kB", ""),
        &[
            "crates/theory/tests/published/blog.rs::table_2_has_the_advertised_window_and_the_accuracy",
        ],
    ),
    yes(
        ("Table 2", "Ethernet's frames and headers leave 94.1 of 100 Mbit/s"),
        ("94.09 %", ""),
        &[
            "crates/theory/tests/published/blog.rs::the_frame_is_94_09_percent_efficient",
            "crates/theory/tests/published/blog.rs::the_measured_94_1_mbit_is_the_links_goodput",
        ],
    ),
];
