package zmtp

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Endpoint is where a socket binds or connects: tcp://HOST:PORT or ipc://PATH.
type Endpoint struct {
	Network string // "tcp" or "unix", as package net names them
	Address string // HOST:PORT or the path
}

// String returns the endpoint in ZeroMQ's notation.
func (e Endpoint) String() string {
	if e.Network == "unix" {
		return "ipc://" + e.Address
	}
	return e.Network + "://" + e.Address
}

// ParseEndpoint reads an endpoint to dial. A wildcard host, which can only be
// bound, is refused.
func ParseEndpoint(s string) (Endpoint, error) { return parseEndpoint(s, false) }

// ParseBind reads an endpoint to listen at: an address of this machine, or * for
// all of them. Network interfaces by their names, as libzmq takes them, are
// refused, and so are host names: which address they mean may change.
func ParseBind(s string) (Endpoint, error) { return parseEndpoint(s, true) }

func parseEndpoint(s string, bind bool) (Endpoint, error) {
	fail := func(why string) (Endpoint, error) {
		return Endpoint{}, fmt.Errorf("endpoint %q: %s", s, why)
	}
	scheme, rest, ok := strings.Cut(s, "://")
	switch {
	case !ok:
		return fail("want tcp://HOST:PORT or ipc://PATH")
	case scheme == "ipc" && rest == "":
		return fail("ipc:// needs the path of a socket")
	case scheme == "ipc" && len(rest) > 107:
		return fail("a socket's path has 107 bytes at most")
	case scheme == "ipc":
		return Endpoint{"unix", rest}, nil
	case scheme != "tcp":
		return fail("the transport " + strconv.Quote(scheme) + " is not spoken; want tcp:// or ipc://")
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		return fail("want tcp://HOST:PORT, an IPv6 host in brackets")
	}
	switch {
	case bind && host == "*":
		rest = ":" + port
	case bind && net.ParseIP(host) == nil:
		return fail("the host is " + strconv.Quote(host) + ", which is no address to listen at; give one of this machine's, or * for all")
	case host == "" || strings.ContainsAny(host, "*;/ "):
		return fail("the host is " + strconv.Quote(host) + ", which is no host to dial; give the one where the publisher runs")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 && !bind {
		return fail("the port is " + strconv.Quote(port) + ", want 1 to 65535")
	}
	return Endpoint{"tcp", rest}, nil
}
