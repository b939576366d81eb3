#include "engine.h"
const struct engine_case poller_cases[] = { {} };
