package feed

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gorilla/websocket"
)

// accept checks a request, makes it a websocket and serves it until it ends.
// Nothing of the state is sent to one that is refused.
func (s *Server) accept(w http.ResponseWriter, r *http.Request) {
	if status, why := s.check(r); status != 0 {
		s.stats.refused.Add(1)
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		http.Error(w, why, status)
		return
	}
	p := newPeer(s)
	if !s.hub.join(p) {
		s.stats.refused.Add(1)
		http.Error(w, "too many clients, or the server is closing: try again later", http.StatusServiceUnavailable)
		return
	}
	defer s.peers.Done()
	defer s.hub.leave(p)
	up := websocket.Upgrader{
		Subprotocols: []string{Protocol}, ReadBufferSize: 4 << 10, WriteBufferSize: 16 << 10,
		HandshakeTimeout: s.opt.WriteTimeout,
		CheckOrigin:      sameHost,
	}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil { // it has answered
		s.stats.refused.Add(1)
		return
	}
	p.serve(conn)
}

// check says with which status a request is refused and why; 0 lets it in.
func (s *Server) check(r *http.Request) (status int, why string) {
	switch {
	case !sameHost(r):
		return http.StatusForbidden, "foreign origin: a page of another host may not open the feed"
	case s.opt.Token == "" && !localName(r.Host):
		// A foreign name that resolves to this machine would make any web page's
		// origin look like our own.
		return http.StatusForbidden, "the host must be localhost or a loopback address"
	case s.opt.Token != "" && !s.authorised(r):
		return http.StatusUnauthorized, "not a valid token; attach and ctl send what ADPDECK_TOKEN holds, others Authorization: Bearer TOKEN"
	case !slices.Contains(websocket.Subprotocols(r), Protocol):
		return http.StatusBadRequest, "not a client of this feed: the websocket subprotocol must be " + Protocol
	}
	return 0, ""
}

// authorised compares digests of fixed length in constant time.
func (s *Server) authorised(r *http.Request) bool {
	heads := r.Header.Values("Authorization")
	if len(heads) != 1 {
		return false
	}
	token, bearer := strings.CutPrefix(heads[0], "Bearer ")
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], s.token[:]) == 1 && bearer
}

// sameHost lets in requests of no browser, and of pages of this very host.
func sameHost(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	u, err := url.Parse(origins[0])
	return err == nil && len(origins) == 1 && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

func localName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
