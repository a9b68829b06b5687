package main

import (
	"fmt"
	"io"
	"os"

	"adpdeck/router/settings"
	"adpdeck/router/sim"
	"adpdeck/router/sim/compare"

	"github.com/spf13/cobra"
)

// replayCompared plays the trace at path once for each entry of the list.
func replayCompared(cmd *cobra.Command, c *clusterFlags, path, list string, asJSON bool) error {
	if err := c.check(true); err != nil {
		return err
	}
	base, err := c.settings(sim.DefaultSettings())
	if err != nil {
		return err
	}
	text, err := readList(list)
	if err != nil {
		return err
	}
	entries, err := compare.Parse(list, text, compare.Entry{
		Workers: c.workers, Ranks: c.ranks, Blocks: c.blocks, MaxActive: c.maxActive, Speed: c.speed,
		Rotate: c.policy == policyRotate, Settings: base,
	})
	if err != nil {
		return err
	}
	_, cfg, tr, err := c.traffic(path)
	if err != nil {
		return err
	}
	bar, done := progress(cmd, tr.Play().Total()*len(entries))
	results, err := compare.Run(cmd.Context(), entries, func(e compare.Entry) (*sim.Sim, error) {
		of := *c
		of.workers, of.ranks, of.blocks, of.maxActive = e.Workers, e.Ranks, e.Blocks, e.MaxActive
		if of.policy = ""; e.Rotate {
			of.policy = policyRotate
		}
		cl, err := of.buildWith(e.Settings, tr.Play(), cfg, cfg.Start, e.Speed, false)
		if err != nil {
			return nil, err
		}
		return cl.sim, nil
	}, bar)
	done()
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	for _, line := range badRows(tr, nil) {
		fmt.Fprintln(cmd.ErrOrStderr(), "adpdeck:", line)
	}
	if asJSON {
		return compare.WriteJSON(cmd.OutOrStdout(), results)
	}
	return compare.WriteTable(cmd.OutOrStdout(), results)
}

// readList reads a file that is not longer than a list may be.
func readList(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("compare: %w; name a list of clusters that can be read", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, settings.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	return text, nil
}
