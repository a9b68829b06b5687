package gateway

import "net/http"

func (g *Gateway) query(w http.ResponseWriter, r *http.Request) {}
