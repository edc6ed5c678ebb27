/// How much an inbox takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest argument that is kept. Longer ones are passed over.
    pub value_bytes_max: u32,
    /// Bytes of memory for one request.
    pub request_bytes_max: usize,
}
