//! Documents of results: reading of any bytes, and almost valid documents made from samples.

use crate::scratch::Scratch;
use arbitrary::{Arbitrary, Unstructured};
use plimsoll_results::{Directory, Document};
use serde_json::{Map, Value, json};

/// Maximum number of edits of a sample.
const MAX_EDITS: usize = 8;
/// Maximum number of copies by which one edit replaces an element of a list.
const MAX_COPIES: u8 = 20;

/// Reads bytes as a document of results, or refuses the bytes (`None`). Bytes that begin with a digit are edits of a
/// sample. Panics if writing and reading an accepted document again changes the document.
pub(crate) fn read<D: Document>(data: &[u8], samples: &[&str]) -> Option<D> {
    let document = document_of(data, samples);
    let dir = Directory::<D>::at(&Scratch::with(D::FILE, &document));
    let read = match dir.read() {
        Ok(read) => read,
        Err(e) => {
            assert!(!e.to_string().is_empty());
            return None;
        }
    };
    let written = read.to_json();
    Scratch::with(D::FILE, written.as_bytes());
    let again = dir.read().expect("what was written is read");
    assert_eq!(again.to_json(), written);
    Some(read)
}

/// The document text of an input: the input itself, or an edited sample if the input begins with a digit. The digit
/// selects the sample, and the other bytes encode the edits.
pub(crate) fn document_of(data: &[u8], samples: &[&str]) -> Vec<u8> {
    match data.split_first() {
        Some((digit @ b'0'..=b'9', edits)) => {
            let sample = samples[usize::from(digit - b'0') % samples.len()];
            edited(sample, edits).into_bytes()
        }
        _ => data.to_vec(),
    }
}

/// An edit of a value in a sample.
#[derive(Debug, Arbitrary)]
enum Edit {
    /// Edit that replaces the value by a number that programs often handle wrongly, such as 0, -1 or the maximum of an
    /// integer type.
    Extreme(u8),
    /// Edit that replaces the value by a floating-point number; an infinity or NaN becomes null.
    Number(f64),
    /// Edit that replaces the value by a whole number.
    Whole(i64),
    /// Edit that replaces the value by a text.
    Text(String),
    /// Edit that replaces the value by null, a truth value, or an empty value.
    Plain(u8),
    /// Edit that removes the value from its table or list.
    Removed,
    /// Edit that replaces an element of a list by 1 to `MAX_COPIES` copies of the element; the field determines the
    /// number of copies.
    Copied(u8),
    /// Edit that replaces the value by a value from another place in the document.
    Elsewhere(u16),
}

/// The sample after at most `MAX_EDITS` edits, which `edits` encodes.
fn edited(sample: &str, edits: &[u8]) -> String {
    let mut document: Value = serde_json::from_str(sample).expect("a sample is JSON");
    let mut from = Unstructured::new(edits);
    for _ in 0..MAX_EDITS {
        if from.is_empty() {
            break;
        }
        let Ok((place, edit)) = <(u16, Edit)>::arbitrary(&mut from) else {
            break;
        };
        let mut places = Vec::new();
        collect(&document, &mut String::new(), &mut places);
        let place = &places[usize::from(place) % places.len()];
        apply(&mut document, place, &places, edit);
    }
    document.to_string()
}

/// Collects the places of all values in a document, as JSON pointers.
fn collect(value: &Value, path: &mut String, places: &mut Vec<String>) {
    places.push(path.clone());
    let len = path.len();
    let mut below = |key: String, value: &Value| {
        path.push('/');
        path.push_str(&key.replace('~', "~0").replace('/', "~1"));
        collect(value, path, places);
        path.truncate(len);
    };
    match value {
        Value::Object(table) => table.iter().for_each(|(k, v)| below(k.clone(), v)),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(i, v)| below(i.to_string(), v)),
        _ => {}
    }
}

fn apply(document: &mut Value, place: &str, places: &[String], edit: Edit) {
    let new = match edit {
        Edit::Extreme(n) => extreme(n),
        Edit::Number(n) => json!(n),
        Edit::Whole(n) => json!(n),
        Edit::Text(text) => json!(text),
        Edit::Plain(n) => plain(n),
        Edit::Elsewhere(n) => {
            let from = &places[usize::from(n) % places.len()];
            let found = document.pointer(from).expect("it was collected");
            // A document inside itself would grow without end.
            if place.starts_with(from.as_str()) {
                return;
            }
            found.clone()
        }
        Edit::Removed => return change_parent(document, place, 0),
        Edit::Copied(n) => return change_parent(document, place, 1 + n % MAX_COPIES),
    };
    *document.pointer_mut(place).expect("it was collected") = new;
}

/// Removes the value at `place` from its table or list if `copies` is 0; otherwise replaces an element of a list by
/// `copies` copies.
fn change_parent(document: &mut Value, place: &str, copies: u8) {
    let Some((parent, key)) = place.rsplit_once('/') else {
        return;
    };
    match document.pointer_mut(parent).expect("it was collected") {
        Value::Object(table) if copies == 0 => {
            table.remove(&key.replace("~1", "/").replace("~0", "~"));
        }
        Value::Array(list) => {
            let at: usize = key.parse().expect("it was collected");
            let value = list.remove(at);
            let all = (0..copies).map(|_| value.clone());
            list.splice(at..at, all);
        }
        _ => {}
    }
}

fn extreme(n: u8) -> Value {
    match n % 12 {
        0 => json!(0),
        1 => json!(1),
        2 => json!(-1),
        3 => json!(u64::MAX),
        4 => json!(i64::MIN),
        5 => json!(u32::MAX),
        6 => json!(u64::from(u32::MAX) + 1),
        7 => json!(1e308),
        8 => json!(-1e308),
        9 => json!(5e-324),
        10 => json!(1e18),
        _ => json!(-0.0),
    }
}

fn plain(n: u8) -> Value {
    match n % 6 {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(false),
        3 => json!(""),
        4 => json!([]),
        _ => Value::Object(Map::new()),
    }
}
