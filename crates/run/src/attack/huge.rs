//! One value of the model is as large as a number can be; everything else is honest.
//!
//! ```text
//! w_k[d] <- 3.4e38      d: the last trainable value, a bias of the output layer in most models
//! ```

use crate::attack::Spec;

pub(super) const SPEC: Spec = Spec {
    update: Some(|upload, _| {
        let trainable = upload.params.layout.trainable();
        if let Some(value) = upload.params.values[..trainable].last_mut() {
            *value = f32::MAX;
        }
    }),
    ..Spec::new("huge", "one value of its model is 3.4e38, the largest that passes the checks")
};
