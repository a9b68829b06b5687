// Package compare plays the same traffic on several simulated clusters, each
// with its own settings, and sets the figures side by side.
//
// Parse reads the list of what is to be compared; Run plays the entries, as
// many at a time as the machine has processors, and returns the results in the
// order of the list. Each entry is a run of its own: the same entry gives the
// same figures whatever stands beside it. The package knows no router; the
// caller builds each cluster.
package compare
