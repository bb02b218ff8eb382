/* Values of options: from text to a member of the command's struct. Pure. */
#ifndef CLI_OPTION_VALUE_H
#define CLI_OPTION_VALUE_H

#include "options.h"

/* Stores the value of `text`; false if it is not what the option needs (nothing is stored then). */
bool opt_value_parse(const opt_def *def, const char *text, void *values);

/* What the option needs, to follow "is not": "a number from 0 to 2". Returns `buf`. */
const char *opt_value_needs(const opt_def *def, char *buf, size_t buf_bytes);

/* Writes a number of an option's range the way a person would: "0.05", "65536". */
const char *opt_value_number(double v, char *buf, size_t buf_bytes);

#endif
