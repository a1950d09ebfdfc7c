//! Small charts, as SVG with sizes in attributes. Each has its text for those who do not see it.

use maud::{Markup, html};

/// The share of entities, out of all, with a part for each count.
pub(super) fn shares(counts: &[u64], all: u64, text: &str) -> Markup {
    let mut start = 0;
    let parts = counts.iter().zip(["", "second"].into_iter().cycle());
    let parts = parts.map(|(count, class)| {
        let from = pixels(start, all, BAR_WIDTH);
        start += count;
        // What is there is seen.
        let width = (pixels(start, all, BAR_WIDTH) - from).max(1);
        html! { rect class=(class) x=(from) y="0" width=(width) height=(BAR_HEIGHT) {} }
    });
    html! {
        svg.chart width=(BAR_WIDTH) height=(BAR_HEIGHT) role="img" aria-label=(text) {
            rect.track x="0" y="0" width=(BAR_WIDTH) height=(BAR_HEIGHT) {}
            @for part in parts { (part) }
        }
    }
}

/// Columns as high as the counts.
pub(super) fn histogram(counts: &[u64], text: &str) -> Markup {
    let highest = counts.iter().copied().max().unwrap_or_default();
    let columns = counts.iter().zip(0_u64..).map(|(count, index)| {
        let height = pixels(*count, highest, HEIGHT).max(u64::from(*count > 0));
        let (x, y) = (index * STEP, HEIGHT - height);
        html! { rect x=(x) y=(y) width=(STEP - 2) height=(height) {} }
    });
    html! {
        svg.chart width=(counts.len() as u64 * STEP) height=(HEIGHT) role="img" aria-label=(text) {
            @for column in columns { (column) }
        }
    }
}

/// The part of a length, rounded.
fn pixels(part: u64, all: u64, length: u64) -> u64 {
    let (part, all, length) = (u128::from(part), u128::from(all.max(1)), u128::from(length));
    let pixels = (part.min(all) * length + all / 2) / all;
    u64::try_from(pixels).unwrap_or_default()
}

const BAR_WIDTH: u64 = 90;
const BAR_HEIGHT: u64 = 10;
const HEIGHT: u64 = 20;
const STEP: u64 = 11;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_drawn_in_proportion_and_what_is_there_is_seen() {
        let shown = shares(&[1, 999], 10_000, "few").into_string();
        assert!(
            shown.contains(r#"<rect class="" x="0" y="0" width="1""#),
            "{shown}"
        );
        assert!(
            shown.contains(r#"<rect class="second" x="0" y="0" width="9""#),
            "{shown}"
        );
        let shown = histogram(&[0, 1, 1_000], "rising").into_string();
        assert!(
            shown.contains(r#"x="0" y="20" width="9" height="0""#),
            "{shown}"
        );
        assert!(
            shown.contains(r#"x="11" y="19" width="9" height="1""#),
            "{shown}"
        );
        assert!(
            shown.contains(r#"x="22" y="0" width="9" height="20""#),
            "{shown}"
        );
        assert_eq!(pixels(u64::MAX, u64::MAX, 20), 20);
        assert_eq!(pixels(7, 0, 20), 20);
    }
}
