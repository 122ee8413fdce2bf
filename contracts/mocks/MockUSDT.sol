// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/**
 * @title A stand-in for USDT as it is on Ethereum: its transfers and approvals return nothing
 * @notice Also, an approval must be of nothing before it can be of another amount, and what is refused is refused without
 * a reason. Anyone may {mint}. The fee, the blacklist and the pause of the original are left out.
 */
contract MockUSDT {
    /// @dev In the slots of OpenZeppelin's tokens, so that local chains write balances of all mocks alike.
    mapping(address account => uint256) public balanceOf;
    mapping(address owner => mapping(address spender => uint256)) public allowance;
    uint256 public totalSupply;
    string public name;
    string public symbol;
    uint8 public decimals;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    constructor(string memory name_, string memory symbol_, uint8 decimals_) {
        (name, symbol, decimals) = (name_, symbol_, decimals_);
    }

    function mint(address to, uint256 value) external {
        totalSupply += value;
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function transfer(address to, uint256 value) external {
        _transfer(msg.sender, to, value);
    }

    function transferFrom(address from, address to, uint256 value) external {
        uint256 allowed = allowance[from][msg.sender];
        if (allowed < value) _refuse();
        if (allowed != type(uint256).max) allowance[from][msg.sender] = allowed - value;
        _transfer(from, to, value);
    }

    function approve(address spender, uint256 value) external {
        if (value != 0 && allowance[msg.sender][spender] != 0) _refuse();
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
    }

    function _transfer(address from, address to, uint256 value) private {
        if (balanceOf[from] < value) _refuse();
        balanceOf[from] -= value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }

    function _refuse() private pure {
        assembly ("memory-safe") {
            revert(0, 0)
        }
    }
}
