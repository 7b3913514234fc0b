"""The Propose view: from GPUs, ports and a mix to ranked networks, each a drawing with a proof."""
