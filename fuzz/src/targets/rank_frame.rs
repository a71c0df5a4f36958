//! Frames between ranks: any bytes are a frame, or are refused. A frame is encoded to the same bytes.

use plimsoll_ranks::frame::Frame;

/// Decodes a frame.
pub fn run(data: &[u8]) {
    let Some(frame) = Frame::decode(data.to_vec()) else {
        return;
    };
    let encoded = frame.encode();
    match frame {
        // A reason is shortened to one line of limited length.
        Frame::Fail(_) => assert_eq!(Frame::decode(encoded), Some(frame)),
        _ => assert_eq!(encoded, data),
    }
}
