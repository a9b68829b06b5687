// Package engine speaks to the engines behind a router.
package engine
