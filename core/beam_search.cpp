#include "beam_search.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace transduce {

namespace {

// One token of a hypothesis; hypotheses that share a beginning share its nodes.
struct Node {
    int32_t parent, token;
};

struct Beam {
    int32_t node;  // its newest token
    float log_probability;
};

struct Finished {
    int32_t node;
    float log_probability, score;
};

struct Candidate {
    float log_probability;
    int32_t row, token;  // the row that it extends

    // Among equals the lower beam is first, then the lower token.
    bool operator<(const Candidate& other) const {
        if (log_probability != other.log_probability) return log_probability > other.log_probability;
        return row != other.row ? row < other.row : token < other.token;
    }
};

float penalty(Index length, float alpha) {
    return static_cast<float>(std::pow((5.0 + static_cast<double>(length)) / 6.0, static_cast<double>(alpha)));
}

struct Sentence {
    Index number = 0, limit = 0;
    int32_t end = 0;
    std::vector<int32_t> prefix;
    std::vector<int32_t> forbidden, forbidden_early;  // early: also the end token
    std::vector<Beam> alive{{-1, 0.0f}};
    std::vector<Finished> finished;  // best score first
};

class Search {
    const Transformer& network_;
    const SearchConfig& config_;
    const SearchRequest& request_;
    std::unique_ptr<State> state_;
    std::vector<Node> nodes_;
    std::vector<Sentence> sentences_;
    std::vector<std::vector<Hypothesis>> found_;
    std::vector<BestTokens> best_;
    std::vector<int32_t> newest_;  // of each row
    Buffer<float> room_;
    Index length_ = 0;

    int32_t number_of(Index sentence, int32_t token) const {
        if (request_.lists.empty()) return token;
        const auto& list = request_.lists[sentence];
        const auto place = std::find(list.begin(), list.end(), token);
        if (place == list.end()) throw std::invalid_argument("a list lacks the token " + std::to_string(token));
        return static_cast<int32_t>(place - list.begin());
    }

    void find_best_tokens(const float* hidden) {
        const Index count = config_.beam > 1 ? 2 * config_.beam : 1, width = padded(network_.config().d_model);
        const bool is_early = length_ + 1 < config_.minimum_length;
        std::vector<Allowed> allowed;
        for (const Sentence& sentence : sentences_) {
            const bool is_forced = length_ < static_cast<Index>(sentence.prefix.size());
            const Allowed own{is_early ? &sentence.forbidden_early : &sentence.forbidden,
                              is_forced ? sentence.prefix[length_] : -1};
            allowed.insert(allowed.end(), sentence.alive.size(), own);
        }
        best_.resize(allowed.size());
        network_.for_outputs(*state_, [&](const Linear& output, Index first, Index last) {
            const Input rows = state_->space.input(network_.kernels(), network_.config().precision, hidden + first * width,
                                                   last - first, width);
            find_best(network_.kernels(), output, rows, &allowed[first], count, room_, &best_[first]);
        });
    }

    // Extends a sentence's beams, which begin at row `first`, and appends the parent row of each new beam.
    void extend(Sentence& sentence, int32_t first, std::vector<int32_t>& parents) {
        std::vector<Candidate> candidates;
        for (size_t beam = 0; beam < sentence.alive.size(); ++beam) {
            const BestTokens& best = best_[first + beam];
            for (size_t i = 0; i < best.tokens.size(); ++i) {
                const float sum = (best.logits[i] - best.log_sum) + sentence.alive[beam].log_probability;
                if (best.tokens[i] >= 0 && sum > -INFINITY)
                    candidates.push_back({sum, static_cast<int32_t>(first + beam), best.tokens[i]});
            }
        }
        std::sort(candidates.begin(), candidates.end());
        const size_t width = static_cast<size_t>(config_.beam), count = config_.beam > 1 ? 2 * width : 1;
        candidates.resize(std::min(candidates.size(), count));
        const std::vector<Beam> before = std::exchange(sentence.alive, {});
        for (size_t rank = 0; rank < candidates.size(); ++rank) {
            const Candidate& candidate = candidates[rank];
            const bool is_ended = candidate.token == sentence.end;
            if (is_ended && config_.stops_when_full && rank >= width) continue;
            if (!is_ended && sentence.alive.size() == width) continue;
            const int32_t node = static_cast<int32_t>(nodes_.size());
            nodes_.push_back({before[candidate.row - first].node, candidate.token});
            if (is_ended) {
                finish(sentence, {node, candidate.log_probability, candidate.log_probability / penalty(length_, config_.length_penalty)});
                continue;
            }
            sentence.alive.push_back({node, candidate.log_probability});
            parents.push_back(candidate.row);
        }
    }

    // Inserts a hypothesis by its score; of equal scores, the earlier is first.
    void finish(Sentence& sentence, Finished finished) {
        const auto place = std::find_if(sentence.finished.begin(), sentence.finished.end(),
                                        [&](const Finished& other) { return other.score < finished.score; });
        sentence.finished.insert(place, finished);
        if (static_cast<Index>(sentence.finished.size()) > config_.beam) sentence.finished.pop_back();
    }

    bool is_done(const Sentence& sentence) const {
        if (length_ >= sentence.limit || sentence.alive.empty()) return true;
        const Index finished = static_cast<Index>(sentence.finished.size());
        if (config_.stops_when_full) return finished == config_.beam;
        if (finished < config_.alternatives) return false;
        const float bound = sentence.alive[0].log_probability / penalty(sentence.limit, config_.length_penalty);
        return sentence.finished[config_.alternatives - 1].score > bound;
    }

    Hypothesis hypothesis(const Sentence& sentence, int32_t node, float log_probability) const {
        Hypothesis found{{}, log_probability};
        for (; node >= 0; node = nodes_[node].parent) {
            const int32_t token = nodes_[node].token;
            found.tokens.push_back(request_.lists.empty() ? token : request_.lists[sentence.number][token]);
        }
        std::reverse(found.tokens.begin(), found.tokens.end());
        return found;
    }

    void release(const Sentence& sentence) {
        std::vector<Hypothesis>& found = found_[sentence.number];
        for (const Finished& one : sentence.finished) found.push_back(hypothesis(sentence, one.node, one.log_probability));
        if (found.empty())
            for (const Beam& beam : sentence.alive) found.push_back(hypothesis(sentence, beam.node, beam.log_probability));
        if (static_cast<Index>(found.size()) > config_.alternatives) found.resize(config_.alternatives);
    }

public:
    Search(const Transformer& network, const SearchConfig& config, const SearchRequest& request)
        : network_(network), config_(config), request_(request), state_(network.start(request.tokens, request.lengths)),
          found_(request.lengths.size()) {
        if (!request.lists.empty()) network.restrict(*state_, request.lists);
        for (size_t number = 0; number < request.lengths.size(); ++number) {
            Sentence sentence;
            sentence.number = static_cast<Index>(number);
            sentence.limit = request.limits[number];
            sentence.end = number_of(number, config.end);
            for (const int32_t token : request.prefixes[number]) sentence.prefix.push_back(number_of(number, token));
            for (const int32_t token : config.never_generated) sentence.forbidden.push_back(number_of(number, token));
            sentence.forbidden_early = sentence.forbidden;
            sentence.forbidden_early.push_back(sentence.end);
            sentences_.push_back(std::move(sentence));
            newest_.push_back(number_of(number, config.start));
        }
    }

    std::vector<std::vector<Hypothesis>> run(const std::function<void()>& poll) {
        while (!sentences_.empty()) {
            poll();
            find_best_tokens(network_.advance(*state_, newest_.data()));
            ++length_;
            std::vector<int32_t> parents;
            newest_.clear();
            int32_t row = 0;
            std::vector<Sentence> staying;
            for (Sentence& sentence : sentences_) {
                const size_t rows = sentence.alive.size(), before = parents.size();
                extend(sentence, row, parents);
                row += static_cast<int32_t>(rows);
                if (is_done(sentence)) {
                    parents.resize(before);
                    release(sentence);
                    continue;
                }
                for (const Beam& beam : sentence.alive) newest_.push_back(nodes_[beam.node].token);
                staying.push_back(std::move(sentence));
            }
            sentences_ = std::move(staying);
            network_.select(*state_, parents);
        }
        return std::move(found_);
    }
};

void require_whole(const Transformer& network, const SearchConfig& config, const SearchRequest& request) {
    const size_t count = request.lengths.size();
    if (request.limits.size() != count || request.prefixes.size() != count ||
        (!request.lists.empty() && request.lists.size() != count))
        throw std::invalid_argument("give each sentence a limit, a prefix and, if any has one, a list");
    if (config.beam < 1 || config.beam > 4096 || config.alternatives < 1 || config.alternatives > config.beam)
        throw std::invalid_argument("the beam must be 1 to 4096, and alternatives 1 to the beam");
    for (size_t number = 0; number < count; ++number) {
        for (const int32_t token : request.prefixes[number])
            if (token < 0 || token >= network.config().vocabulary_size)
                throw std::invalid_argument("a prefix names a token outside the vocabulary");
        if (request.limits[number] < 1) throw std::invalid_argument("a limit is below 1");
    }
}

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(const Transformer& network, const SearchConfig& config,
                                                 const SearchRequest& request, const std::function<void()>& poll) {
    require_whole(network, config, request);
    return Search(network, config, request).run(poll);
}

}  // namespace transduce
