#include "engine.h"
const struct engine_case retire_cases[] = { {} };
