//! Texts without characters that act on a terminal, or on the order of what it shows.

/// The keys of an entity, for a message.
pub(crate) fn key(partition: &str, row: &str) -> String {
    harmless(&format!("({partition:?}, {row:?})"))
}

/// A text of which at most this number of characters is shown.
pub(crate) fn shortened(text: &str, chars: usize) -> String {
    let mut shown: String = text.chars().take(chars).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// A text without characters that act on a terminal, or on the order of what it shows.
pub(crate) fn harmless(text: &str) -> String {
    escaped(text, |character| character.escape_unicode().to_string())
}

/// The same within JSON. It has no character beyond 16 bits that acts.
pub(crate) fn harmless_json(json: &str) -> String {
    escaped(json, |character| format!("\\u{:04x}", u32::from(character)))
}

fn escaped(text: &str, escape: impl Fn(char) -> String) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if acts(character) {
            shown.push_str(&escape(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Control characters, and the marks of bidirectional text.
pub(crate) fn acts(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_does_not_act_on_a_terminal() {
        let text = "a\u{1b}[2Jb\u{202e}c\td\u{9b}ä漢";
        let shown = harmless(text);
        assert_eq!(shown, r"a\u{1b}[2Jb\u{202e}c\u{9}d\u{9b}ä漢");
        let json = serde_json::to_string(text).expect("a string is JSON");
        let shown = harmless_json(&json);
        assert!(!shown.chars().any(acts), "{shown}");
        let read: String = serde_json::from_str(&shown).expect("it is still JSON");
        assert_eq!(read, text);
    }
}
