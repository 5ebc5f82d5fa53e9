//! One value of the model is as large as a number can be; everything else is honest.
//!
//! ```text
//! w_k[0] <- 3.4e38
//! ```

use crate::attack::Spec;

pub(super) const SPEC: Spec = Spec {
    update: Some(|upload, _| {
        if let Some(value) = upload.params.values.first_mut() {
            *value = f32::MAX;
        }
    }),
    ..Spec::new("huge", "one value of its model is 3.4e38, the largest that passes the checks")
};
