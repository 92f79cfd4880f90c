//! Alignment of model bytes: the weights are read in place, so the file must start at a multiple of four.

/// Bytes at an address that is a multiple of four, as [`Model::parse`](crate::Model::parse) needs them.
///
/// `include_bytes!` promises no alignment. [`include_model!`](crate::include_model) wraps it in this type;
/// for bytes that arrive at run time, put the receive buffer inside one.
///
/// ```
/// static BUFFER: tha_core::Aligned<[u8; 64]> = tha_core::Aligned([0; 64]);
/// assert_eq!(BUFFER.0.as_ptr() as usize % 4, 0);
/// ```
#[repr(C, align(4))]
#[derive(Clone, Copy, Debug)]
pub struct Aligned<T: ?Sized>(pub T);

/// Links a `.tha` file into flash, aligned: `const MODEL: &[u8] = tha_core::include_model!("engine.tha");`
///
/// The path is relative to the source file, as for `include_bytes!`. A file that does not begin like a model
/// is a compile-time error; everything else is checked by [`Model::parse`](crate::Model::parse).
#[macro_export]
macro_rules! include_model {
    ($path:expr $(,)?) => {{
        const BYTES: &[u8] = {
            const ALIGNED: &$crate::Aligned<[u8]> = &$crate::Aligned(*include_bytes!($path));
            &ALIGNED.0
        };
        const _: () = assert!($crate::format::begins_like_a_model(BYTES), "not a .tha model file");
        BYTES
    }};
}
