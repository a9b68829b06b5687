// Command shots turns a frame of terminal text into a picture.
//
//	shots [-o FILE.svg] [-ink #cdd6e4] [-paper #10161f] [-title TEXT] [FRAME.ansi]
//
// It reads lines with colour sequences, as the console draws them or as
// `tmux capture-pane -e -p` prints them, from a file or from standard input,
// and writes an SVG. Every cell stands at its own column, and lines and blocks
// are shapes, so that bars join whatever font the reader has.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "shots:", err)
		os.Exit(1)
	}
}

// maxFrameBytes bounds what is read.
const maxFrameBytes = 8 << 20

func run(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("shots", flag.ContinueOnError)
	target := flags.String("o", "", "file to write, instead of standard output")
	ink := flags.String("ink", "#cdd6e4", "colour of text without one")
	paper := flags.String("paper", "#10161f", "colour of the ground")
	title := flags.String("title", "", "what the picture shows, for readers who cannot see it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 1 {
		return fmt.Errorf("one frame at a time: got %d files", flags.NArg())
	}
	if flags.NArg() == 1 {
		f, err := os.Open(flags.Arg(0))
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	frame, err := io.ReadAll(io.LimitReader(in, maxFrameBytes+1))
	if err != nil {
		return fmt.Errorf("read the frame: %w", err)
	}
	if len(frame) > maxFrameBytes {
		return fmt.Errorf("the frame is larger than %d bytes", maxFrameBytes)
	}
	p, err := newPicture(*ink, *paper, *title)
	if err != nil {
		return err
	}
	svg, err := p.draw(string(frame))
	if err != nil {
		return err
	}
	if *target == "" {
		_, err = out.Write(svg)
		return err
	}
	return os.WriteFile(*target, svg, 0o644)
}
