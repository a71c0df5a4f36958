//! Addresses (URL paths) of the browser's pages.

/// Percent-encodes a text as one segment of a URL path.
fn segment(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    let encoded = text.bytes().map(|b| match plain(b) {
        true => char::from(b).to_string(),
        false => format!("%{b:02X}"),
    });
    encoded.collect()
}

/// Address of the page on the results with a name.
pub(crate) fn address(results: &str) -> String {
    format!("/results/{}", segment(results))
}

/// Address of the page on a run of a series, by the path of the run's directory below the directory of the series.
pub(crate) fn run_address(results: &str, run: &str) -> String {
    let segments: Vec<String> = run.split('/').map(segment).collect();
    format!("{}/runs/{}", address(results), segments.join("/"))
}
