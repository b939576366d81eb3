#include "engine.h"
const struct engine_case credit_cases[] = { {} };
