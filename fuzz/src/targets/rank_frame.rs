//! Frames between ranks: any bytes are a frame, or are refused. A frame is encoded to the same bytes.

use plimsoll_ranks::frame::Frame;

/// Decodes the input as a frame, and encodes the frame again.
pub fn run(data: &[u8]) {
    let Some(frame) = Frame::decode(data.to_vec()) else {
        return;
    };
    let encoded = frame.encode();
    match frame {
        // Decoding shortens the reason of a failure to one line of limited length, so the encoded bytes may differ.
        Frame::Fail(_) => assert_eq!(Frame::decode(encoded), Some(frame)),
        _ => assert_eq!(encoded, data),
    }
}
