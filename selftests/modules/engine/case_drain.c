#include "engine.h"
const struct engine_case drain_cases[] = { {} };
