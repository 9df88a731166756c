// Package lang reads an experiment's file: the language.
//
// [Load] works in three stages. Read parses the files, sorts their blocks and
// keeps bodies and expressions with their ranges; nothing is evaluated but
// variables. Expand makes the points: the ordered cross product of the sweep
// without what an exclude block takes out. Evaluate decodes every block once
// per point (and per repetition where the file uses run.*) into plain structs
// of testbed, workloads and results. All three stages run before anything is
// built, and each goes on after a mistake, so one pass finds the mistakes of
// every point; the same mistake in several points is told once.
//
// The structs that hold a block declare its attributes by field tags (package
// attr); docs/language.md is generated from them by [Reference]. What is wrong
// with a file is told as [Diagnostics]: file, line, column, the line itself and
// a remedy. Types of the parser do not leave this package: checks and claims
// are handed out as Go functions.
package lang
