// Package house owns the rules of this repository that a compiler does not hold: every package says what it is, imports
// go one way, files and functions stay small. It holds tests only; it reads the source and imports nothing of ours.
package house
