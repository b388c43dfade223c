//! Where the operations of a JSON Patch point, as the real server's library takes it: indexes may count from the end or
//! begin with zeros, and a `~` that escapes nothing stands for itself.

use json_patch::jsonptr::PointerBuf;
use serde_json::Value;

/// A path in which every `~` escapes something.
pub(super) fn escaped(path: &str) -> String {
    let mut whole = String::new();
    let mut signs = path.chars().peekable();
    while let Some(sign) = signs.next() {
        whole.push(sign);
        if sign == '~' && !matches!(signs.peek(), Some('0' | '1')) {
            whole.push('0');
        }
    }
    whole
}

/// A path with plain indexes. `adding` says that there may be one item more than there are.
pub(super) fn plain(object: &Value, path: &PointerBuf, adding: bool) -> PointerBuf {
    let tokens: Vec<_> = path.as_str().split('/').skip(1).collect();
    let mut plain = String::new();
    let mut place = Some(object);
    for (at, token) in tokens.iter().enumerate() {
        let last = at + 1 == tokens.len();
        let step = match place {
            Some(Value::Array(items)) => index(token, items.len() + usize::from(adding && last)),
            _ => (*token).to_owned(),
        };
        plain = format!("{plain}/{step}");
        place = object.pointer(&plain);
    }
    PointerBuf::parse(plain).unwrap_or_else(|_| path.clone())
}

fn index(token: &str, length: usize) -> String {
    let Ok(number) = token.parse::<i64>() else { return token.to_owned() };
    let from_start = if number < 0 { number + i64::try_from(length).unwrap_or(0) } else { number };
    from_start.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn indexes_count_from_the_end_and_may_begin_with_zeros() {
        let object = json!({"list": [{"inner": [1, 2]}]});
        let plain =
            |path: &str, adding| plain(&object, &PointerBuf::parse(path.to_owned()).unwrap(), adding).to_string();
        assert_eq!(plain("/list/-1", false), "/list/0");
        assert_eq!(plain("/list/-1", true), "/list/1");
        assert_eq!(plain("/list/-1/inner/01", false), "/list/0/inner/1");
        assert_eq!(plain("/list/-", true), "/list/-");
        assert_eq!(plain("/list/-7", false), "/list/-6");
        assert_eq!(escaped("/a~1b/c~2/d~"), "/a~1b/c~02/d~0");
    }
}
