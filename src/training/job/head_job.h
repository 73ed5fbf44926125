// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/result.h"
#include "training/job/job_options.h"

namespace outrider::training {

// Makes a head for a model. It measures the machine and says how long all will take, has the model write
// text, trains, and measures the head in 16, 8 and 4 bits. It puts the best one where `auto` finds it, and
// proves that text stays the same. A job that was ended at any time goes on when it is run again with the
// same options. Errors: a model or kind that cannot be trained, too little memory or disk, the folder of
// another job, a text that differs.
Status run_head_job(JobOptions options);

}  // namespace outrider::training
