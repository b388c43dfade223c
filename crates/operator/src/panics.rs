//! What a panic said: a fault of ours, for the log.

use std::any::Any;

/// The message of a panic; empty if it had none that is text.
pub(crate) fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_put_into_words() {
        let formatted = std::panic::catch_unwind(|| panic!("at the {}", "disco")).unwrap_err();
        assert_eq!(words(&*formatted), "at the disco");
        let plain = std::panic::catch_unwind(|| panic!("at once")).unwrap_err();
        assert_eq!(words(&*plain), "at once");
        assert_eq!(words(&7_u8), "");
    }
}
