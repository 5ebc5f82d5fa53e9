//! One value of the model is NaN. The server refuses the update, so the client counts as failed.
//!
//! ```text
//! w_k[d] <- NaN      d: the last trainable value, a bias of the output layer in most models
//! ```

use crate::attack::Spec;

pub(super) const SPEC: Spec = Spec {
    update: Some(|upload, _| {
        let trainable = upload.params.layout.trainable();
        if let Some(value) = upload.params.values[..trainable].last_mut() {
            *value = f32::NAN;
        }
    }),
    ..Spec::new("nan", "one value of its model is NaN, so that the server refuses the update")
};
