//! The experiments of FEMU that clean, against what the times and the link say.

use crate::reproduce::{assert_figure, assert_holds_for_its_reason, figures};

const SCHEMES: [&str; 3] = ["controller", "channel", "plane"];

/// A page of 16 KiB on a lane of 800 MB/s, and what a transfer costs besides; in microseconds.
const ON_A_LANE: f64 = 16_384.0 / 800.0 + 1.0;

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn the_host_loses_the_share_of_the_link_that_its_moves_take() {
    let (report, control) = assert_holds_for_its_reason("FEMU-g");
    let (moved, _) = figures(&report, "moved through the host, for each operation");
    assert!((0.4..0.6).contains(&moved), "victims are about half alive: {moved}");
    assert_figure(&report, "moved inside the device, for each operation", moved, 0.0);
    // Half of the operations go either way, and each moved page goes both ways.
    for (way, pages) in [
        ("no cleaning", 0.5),
        ("moves through the host", 0.5 + moved),
        ("moves inside the device", 0.5),
    ] {
        let expected = 16_384.0 / (pages * ON_A_LANE);
        let label = format!("1 lane, {way}: throughput");
        assert_figure(&report, &label, expected, expected * 0.01);
    }
    assert_eq!(figures(&report, "1 lane, moves through the host: loss").1, Some(50.0));
    let share = |report, lanes| {
        figures(report, &format!("{lanes}, moves inside: share of the host's loss")).0
    };
    let shares = ["1 lane", "2 lanes", "4 lanes"].map(|lanes| share(&report, lanes));
    assert!(shares.is_sorted(), "the wider the link, the less is saved: {shares:?}");
    assert!(share(&control, "1 lane") > 90.0, "without a link nothing is saved");
}

/// Each takes a minute: `cargo xtask soak` runs them.
mod long {
    use super::*;

    #[test]
    #[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
    fn reads_wait_longest_for_a_controller_and_longer_for_a_channel_than_for_a_plane() {
        let (report, control) = assert_holds_for_its_reason("FEMU-6a");
        let (moved, _) = figures(&report, "controller blocked: moved");
        assert!(moved > 128.0 * 256.0 / 2.0, "writes have something cleaned: {moved}");
        for scheme in SCHEMES {
            assert_figure(&report, &format!("{scheme} blocked: host writes"), 128.0 * 256.0, 0.0);
            assert_figure(&report, &format!("{scheme} blocked: moved"), moved, 0.0);
            // A sense of 40 us and a transfer of 20 us, and nothing before it.
            assert_figure(&report, &format!("{scheme} blocked: median of reads"), 60.0, 0.0);
        }
        let of = |what: &str| SCHEMES.map(|scheme| figures(&report, &format!("{scheme} {what}")).0);
        let [controller, channel, plane] = of("blocked: p99.9 of reads");
        // A page that is copied: a sense and a program.
        assert!(plane <= 60.0 + 40.0 + 200.0, "{plane}");
        // No block has more than 256 pages to move, each twice over the channel, before its erase;
        // two of a channel at a time are rare.
        assert!((2_000.0..=256.0 * 280.0 + 2_060.0).contains(&channel), "{channel}");
        assert!(controller < 700_000.0, "{controller}");
        for quantile in ["p99", "p99.9"] {
            assert_figure(&control, &format!("{quantile}: controller over channel"), 1.0, 0.0);
            assert_figure(&control, &format!("{quantile}: channel over plane"), 1.0, 0.0);
        }
        assert_figure(&control, "controller blocked: moved", 0.0, 0.0);
    }
}
