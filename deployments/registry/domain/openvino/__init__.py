"""OpenVINO's intermediate representation: a graph in XML beside a file of weights."""
